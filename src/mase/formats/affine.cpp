// SPDX-License-Identifier: Apache-2.0
// Integers with a scale and a zero point that are given, as ONNX's QuantizeLinear and QONNX's Quant
// have them, rounded by their arithmetic to the last bit (kernels/affine.h). scale_integer with a
// given step holds the same numbers and decides in double precision which of them is nearest.
#include <algorithm>
#include <cmath>

#include "mase/base/fields.h"
#include "mase/formats/config.h"
#include "mase/formats/given.h"

namespace mase::affine_format {
namespace {

NumberType parse(const Value& config) {
  Scaled type;
  type.width = static_cast<int>(config["width"].as_int());
  type.is_signed = config["is_signed"].as_bool();
  type.narrow = config["narrow"].as_bool();
  type.source = Scaled::Source::given;
  type.arithmetic = config["zero_first"].as_bool() ? Scaled::Arithmetic::zero_first
                                                   : Scaled::Arithmetic::zero_last;
  type.rounding = rounding_from_name(config["rounding"].as_string());
  if (type.rounding == Rounding::stochastic)
    throw config_error(config, "rounding", "nothing is drawn here", "use integer");
  // In single precision, as they are computed with.
  for (const double step : given_numbers(config["scale"]))
    type.steps.push_back(static_cast<float>(step));
  for (const double zero : given_numbers(config["zero_point"]))
    type.zeros.push_back(static_cast<float>(zero));
  type.affine = std::any_of(type.zeros.begin(), type.zeros.end(), [](double z) { return z != 0; });
  if (!type.affine) type.zeros.clear();
  return {type, given_granularity(config, {"scale", "zero_point"})};
}

const Register<FormatRecord> registered{{
    .name = "affine",
    .class_suffix = "Affine",
    .summary = "integers with a given scale and zero point, rounded as ONNX and QONNX round",
    .help = "What QuantizeLinear and Quant nodes of ONNX files become. The quotient x / scale is "
            "rounded in single precision, as their executors compute it.",
    .schema = {[] {
      std::vector<Field> fields = {
          width_field(1, 32, "bits of a code"),
          boolean_field("is_signed", "two's complement, or codes from zero up", true),
          boolean_field(
              "narrow",
              "leave out the lowest code of two's complement, or the largest unsigned one", false),
          given_field(
              "scale", "the value of one step, or a list of them",
              [](double scale) { return std::isfinite(scale) && static_cast<float>(scale) > 0; },
              "a positive number"),
          given_field(
              "zero_point", "the code of zero, or a list of them",
              [](double zero) { return std::isfinite(zero) && std::fabs(zero) < 0x1p24; },
              "a number"),
          boolean_field("zero_first",
                        "add the zero point before rounding (QONNX) or after it (ONNX)", true),
          rounding_field(false),
          ste_field()};
      fields[3].default_value = 1.0;
      for (Field& field : given_granularity_fields()) fields.push_back(std::move(field));
      return fields;
    }()},
    .type = [](const Value& config) -> TypeOrReason { return parse(config); },
    .precision = [](const Value& config) { return std::vector<int64_t>{config["width"].as_int()}; },
    .adapt = adapt_sign,
    .ladder =
        [](double largest) {
          std::vector<Value> configs;
          for (const int width : {8, 4}) {
            const double needed = std::max(largest, 1e-6) / (std::ldexp(1.0, width - 1) - 1);
            const double step = std::exp2(std::ceil(std::log2(needed)));
            configs.push_back(Dict{{"width", width}, {"scale", step}});
          }
          return configs;
        },
}};

}  // namespace
}  // namespace mase::affine_format
