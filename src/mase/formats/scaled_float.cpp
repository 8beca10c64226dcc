// SPDX-License-Identifier: Apache-2.0
// Small floats times a given scale: QONNX's FloatQuant, by its arithmetic. x / scale is rounded to
// the step of its own exponent, 2^max(floor(log2 |x|) - m, 1 - bias - m), and clamped. Without
// saturation what is beyond becomes infinite or NaN.
#include <algorithm>
#include <cmath>
#include <limits>

#include "mase/base/fields.h"
#include "mase/formats/elementwise.h"
#include "mase/formats/given.h"

namespace mase::scaled_float_format {
namespace {

struct Spec {
  int mantissa;
  float least_exponent, largest, scale;
  bool saturates, has_infinity;
  Rounding rounding;
};

float rounded(const Spec& spec, float given) {
  if (std::isnan(given)) return given;
  const float x = given / spec.scale;
  if (std::isinf(x) && spec.saturates) return std::copysign(spec.largest * spec.scale, x);
  const float tiny = std::numeric_limits<float>::min();
  const float exponent =
      std::max(std::floor(std::log2(std::fabs(x) + tiny)) - static_cast<float>(spec.mantissa),
               spec.least_exponent);
  const float step = std::exp2(exponent);
  const float value = step * round_to_whole(x / step, spec.rounding);
  const float inside = std::clamp(value, -spec.largest, spec.largest);
  if (spec.saturates || value == inside) return inside * spec.scale;
  if (std::isnan(value) || !spec.has_infinity) return std::numeric_limits<float>::quiet_NaN();
  return std::copysign(std::numeric_limits<float>::infinity(), value);
}

std::vector<Spec> specs_of(const Value& config) {
  Spec spec{};
  const int exponent = static_cast<int>(config["exponent_width"].as_int());
  spec.mantissa = static_cast<int>(config["mantissa_width"].as_int());
  const double bias = config["exponent_bias"].is_null() ? std::ldexp(1.0, exponent - 1) - 1
                                                        : config["exponent_bias"].as_double();
  spec.least_exponent = static_cast<float>(1 - bias - spec.mantissa);
  double largest =
      (2 - std::exp2(-spec.mantissa)) * std::exp2(std::ldexp(1.0, exponent) - 1 - bias);
  if (!config["max_value"].is_null()) largest = std::min(largest, config["max_value"].as_double());
  spec.largest = static_cast<float>(largest);
  spec.saturates = config["saturation"].as_bool();
  spec.has_infinity = config["has_infinity"].as_bool();
  spec.rounding = rounding_from_name(config["rounding"].as_string());
  if (spec.rounding == Rounding::stochastic)
    throw config_error(config, "rounding", "nothing is drawn here", "use minifloat_ieee");
  std::vector<Spec> specs;
  for (const double scale : given_numbers(config["scale"])) {
    spec.scale = static_cast<float>(scale);
    specs.push_back(spec);
  }
  return specs;
}

Quantizer make(const Value& config) {
  const Granularity granularity = given_granularity(config, {"scale"});
  const std::vector<Spec> specs = specs_of(config);
  GivenRule rule;
  rule.groups = static_cast<int64_t>(specs.size());
  rule.width = 1 + static_cast<int>(config["exponent_width"].as_int()) + specs[0].mantissa;
  rule.block = given_block(config);
  rule.reference = [specs](int64_t group, float x) {
    return rounded(specs[static_cast<size_t>(group)], x);
  };
  rule.kernel = [specs](int64_t group, const float* in, float* out, size_t count) {
    const Spec& spec = specs[static_cast<size_t>(group)];
    for (size_t i = 0; i < count; ++i) out[i] = rounded(spec, in[i]);
  };
  Quantizer q = given_quantizer(std::move(rule), granularity);
  if (specs.size() == 1) {
    q.largest = static_cast<double>(specs[0].largest * specs[0].scale);
    q.lowest = -*q.largest;
  }
  return q;
}

const Register<FormatRecord> registered{{
    .name = "scaled_float",
    .class_suffix = "ScaledFloat",
    .summary = "small floats times a given scale, rounded as QONNX rounds",
    .help = "What FloatQuant nodes of QONNX files become.",
    .schema = {[] {
      std::vector<Field> fields = {
          integer_field("exponent_width", "bits of the exponent", 4).between(0, 8),
          integer_field("mantissa_width", "bits of the fraction", 3).between(0, 23),
          number_field("exponent_bias",
                       "subtracted from the exponent field; 2^(exponent_width-1)-1 if not given")
              .between(-126, 254),
          number_field("max_value",
                       "the largest number before scaling, if it is below what the bits allow")
              .from(0),
          given_field(
              "scale", "what the numbers are multiplied with, or a list of them",
              [](double scale) { return std::isfinite(scale) && static_cast<float>(scale) > 0; },
              "a positive number"),
          boolean_field("saturation", "values beyond the range become its ends", true),
          boolean_field("has_infinity", "without saturation: they become infinite; else NaN",
                        false),
          rounding_field(false),
          ste_field()};
      fields[4].default_value = 1.0;
      for (Field& field : given_granularity_fields()) fields.push_back(std::move(field));
      return fields;
    }()},
    .type = [](const Value&) -> TypeOrReason { return "its floats are multiplied with a scale"; },
    .make = make,
    .precision =
        [](const Value& config) {
          return std::vector<int64_t>{
              1 + config["exponent_width"].as_int() + config["mantissa_width"].as_int(),
              config["exponent_width"].as_int()};
        },
}};

}  // namespace
}  // namespace mase::scaled_float_format
