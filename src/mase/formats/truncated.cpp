// SPDX-License-Identifier: Apache-2.0
// Integers with a given scale whose low bits are dropped: QONNX's Trunc, which stands behind
// average pools.
//   k = round_half_even(x / scale + zero) / 2^dropped, clamped to `width` bits if there is one,
//   value = (round(k) - zero / 2^dropped) * output_scale
// In QONNX's first version (keeps_scale) zero point and scale stay, and nothing is clamped. It
// rounds twice, so it is not the nearest number and has no codes of its own.
#include <cmath>

#include "mase/base/fields.h"
#include "mase/formats/config.h"

namespace mase::truncated_format {
namespace {

NumberType parse(const Value& config) {
  Scaled type;
  type.width = static_cast<int>(config["width"].as_int());
  type.is_signed = config["is_signed"].as_bool();
  type.narrow = config["narrow"].as_bool();
  type.source = Scaled::Source::given;
  type.arithmetic = Scaled::Arithmetic::truncate;
  type.rounding = rounding_from_name(config["rounding"].as_string());
  if (type.rounding == Rounding::stochastic)
    throw config_error(config, "rounding", "nothing is drawn here", "name another");
  const auto scale = static_cast<float>(config["scale"].as_double());
  const auto zero = static_cast<float>(config["zero_point"].as_double());
  float divisor = std::exp2(static_cast<float>(config["dropped"].as_int()));
  float out_scale = scale, out_zero = zero;
  type.clamped = !config["keeps_scale"].as_bool();
  if (type.clamped) {
    out_scale = static_cast<float>(config["output_scale"].as_double());
    divisor = std::exp2(std::nearbyint(std::log2(out_scale / scale)));
    out_zero = zero / divisor;
  }
  type.dropped_step = scale;
  type.dropped_zero = zero;
  type.divisor = divisor;
  type.steps = {out_scale};
  type.affine = out_zero != 0;
  if (type.affine) type.zeros = {out_zero};
  return {type};
}

std::optional<std::string> not_positive(const Value& value) {
  if (std::isfinite(value.as_double()) && static_cast<float>(value.as_double()) > 0) return {};
  return "expected a positive number";
}

const Register<FormatRecord> registered{{
    .name = "truncated",
    .class_suffix = "Truncated",
    .summary = "integers with a given scale whose low bits are dropped, as QONNX drops them",
    .help = "What Trunc nodes of QONNX files become.",
    .schema = {{width_field(1, 24, "bits that are left"),
                number_field("scale", "the value of one step before", 1.0).checked(not_positive),
                number_field("zero_point", "the code of zero before", 0.0),
                integer_field("dropped", "how many bits, with keeps_scale", 0).between(0, 24),
                boolean_field("keeps_scale",
                              "scale and zero point stay as they are; nothing is clamped", false),
                number_field("output_scale",
                             "the value of one step after; says how many bits are dropped", 1.0)
                    .checked(not_positive),
                boolean_field("is_signed", "the range of `width` bits is signed", true),
                boolean_field("narrow", "leave out the lowest code", false), rounding_field(false),
                ste_field()}},
    .type = [](const Value& config) -> TypeOrReason { return parse(config); },
    .precision = [](const Value& config) { return std::vector<int64_t>{config["width"].as_int()}; },
    .adapt = adapt_sign,
    .ladder =
        [](double largest) {
          std::vector<Value> configs;
          for (const int width : {8, 4}) {
            const double needed = std::max(largest, 1e-6) / (std::ldexp(1.0, width - 1) - 1);
            const double step = std::exp2(std::ceil(std::log2(needed)));
            configs.push_back(Dict{{"width", width}, {"scale", step / 2}, {"output_scale", step}});
          }
          return configs;
        },
}};

}  // namespace
}  // namespace mase::truncated_format
