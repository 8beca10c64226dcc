// SPDX-License-Identifier: Apache-2.0
// Integers with a scale and a zero point that are given, as ONNX's QuantizeLinear and QONNX's Quant
// have them, rounded by their arithmetic to the last bit (kernels/affine.h). scale_integer with a
// given step holds the same numbers and decides in double precision which of them is nearest.
#include <algorithm>
#include <cmath>

#include "mase/base/fields.h"
#include "mase/formats/elementwise.h"
#include "mase/formats/given.h"
#include "mase/formats/kernels/affine.h"

namespace mase::affine_format {
namespace {

std::vector<AffineSpec> specs_of(const Value& config) {
  const int64_t width = config["width"].as_int();
  const bool is_signed = config["is_signed"].as_bool(), narrow = config["narrow"].as_bool();
  AffineSpec range;
  range.zero_first = config["zero_first"].as_bool();
  range.rounding = rounding_from_name(config["rounding"].as_string());
  if (range.rounding == Rounding::stochastic)
    throw config_error(config, "rounding", "nothing is drawn here", "use integer");
  const int bits = static_cast<int>(width) - (is_signed ? 1 : 0);
  range.high = std::ldexp(1.0f, bits) - (!is_signed && narrow ? 2 : 1);
  range.low = is_signed ? -std::ldexp(1.0f, bits) + (narrow ? 1 : 0) : 0;
  std::vector<double> scales = given_numbers(config["scale"]),
                      zeros = given_numbers(config["zero_point"]);
  if (zeros.empty()) zeros = {0};
  std::vector<AffineSpec> specs;
  for (size_t i = 0; i < std::max(scales.size(), zeros.size()); ++i) {
    range.scale = static_cast<float>(scales[scales.size() == 1 ? 0 : i]);
    range.zero = static_cast<float>(zeros[zeros.size() == 1 ? 0 : i]);
    specs.push_back(range);
  }
  return specs;
}

int64_t mask_of(int64_t width) { return (int64_t{1} << width) - 1; }

Quantizer make(const Value& config) {
  const Granularity granularity = given_granularity(config, {"scale", "zero_point"});
  const std::vector<AffineSpec> specs = specs_of(config);
  GivenRule rule;
  rule.groups = static_cast<int64_t>(specs.size());
  rule.width = static_cast<int>(config["width"].as_int());
  rule.block = given_block(config);
  rule.kernel = [specs](int64_t group, const float* in, float* out, size_t count) {
    affine_kernel(specs[static_cast<size_t>(group)], in, out, count);
  };
  rule.reference = [specs](int64_t group, float x) {
    return affine_reference(specs[static_cast<size_t>(group)], x);
  };
  // Codes are two's complement, or plain binary.
  const int64_t mask = mask_of(config["width"].as_int());
  const bool is_signed = config["is_signed"].as_bool();
  rule.code = [specs, mask, is_signed](int64_t group, float x) {
    const AffineSpec& spec = specs[static_cast<size_t>(group)];
    const float k = std::nearbyint(affine_reference(spec, x) / spec.scale + spec.zero);
    // Above 24 bits single precision rounds the largest code up, out of the range.
    const int64_t whole = std::min(static_cast<int64_t>(k), is_signed ? mask / 2 : mask);
    return static_cast<uint32_t>(whole & mask);
  };
  rule.value = [specs, mask, is_signed](int64_t group, uint32_t code) {
    const AffineSpec& spec = specs[static_cast<size_t>(group)];
    const bool negative = is_signed && code > mask / 2;
    const auto k = static_cast<float>(negative ? code - mask - 1 : code);
    return (k - spec.zero) * spec.scale;
  };
  Quantizer q = given_quantizer(std::move(rule), granularity);
  if (specs.size() == 1) {
    q.lowest = static_cast<double>((specs[0].low - specs[0].zero) * specs[0].scale);
    q.largest = static_cast<double>((specs[0].high - specs[0].zero) * specs[0].scale);
    q.smallest_positive = static_cast<double>(specs[0].scale);
  }
  return q;
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
    .type = [](const Value&) -> TypeOrReason { return "it rounds by the arithmetic of ONNX"; },
    .make = make,
    .precision = [](const Value& config) { return std::vector<int64_t>{config["width"].as_int()}; },
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
