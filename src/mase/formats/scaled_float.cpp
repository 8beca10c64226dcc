// SPDX-License-Identifier: Apache-2.0
// Small floats times a given scale: QONNX's FloatQuant, by its arithmetic. x / scale is rounded to
// the step of its own exponent, 2^max(floor(log2 |x|) - m, 1 - bias - m), and clamped. Without
// saturation what is beyond becomes infinite or NaN.
#include <algorithm>
#include <cmath>
#include <limits>

#include "mase/base/fields.h"
#include "mase/formats/config.h"
#include "mase/formats/given.h"

namespace mase::scaled_float_format {
namespace {

float rounded(const ScaledFloat& type, float least_exponent, float largest, float scale,
              float given) {
  if (std::isnan(given)) return given;
  const float x = given / scale;
  if (std::isinf(x) && type.saturates) return std::copysign(largest * scale, x);
  const float tiny = std::numeric_limits<float>::min();
  const float exponent =
      std::max(std::floor(std::log2(std::fabs(x) + tiny)) - static_cast<float>(type.mantissa),
               least_exponent);
  const float step = std::exp2(exponent);
  const float value = step * round_to_whole(x / step, type.rounding);
  const float inside = std::clamp(value, -largest, largest);
  if (type.saturates || value == inside) return inside * scale;
  if (std::isnan(value) || !type.has_infinity) return std::numeric_limits<float>::quiet_NaN();
  return std::copysign(std::numeric_limits<float>::infinity(), value);
}

NumberType parse(const Value& config) {
  ScaledFloat type;
  type.exponent = static_cast<int>(config["exponent_width"].as_int());
  type.mantissa = static_cast<int>(config["mantissa_width"].as_int());
  type.bias = config["exponent_bias"].is_null() ? std::ldexp(1.0, type.exponent - 1) - 1
                                                : config["exponent_bias"].as_double();
  type.largest =
      (2 - std::exp2(-type.mantissa)) * std::exp2(std::ldexp(1.0, type.exponent) - 1 - type.bias);
  if (!config["max_value"].is_null())
    type.largest = std::min(type.largest, config["max_value"].as_double());
  type.saturates = config["saturation"].as_bool();
  type.has_infinity = config["has_infinity"].as_bool();
  type.rounding = rounding_from_name(config["rounding"].as_string());
  if (type.rounding == Rounding::stochastic)
    throw config_error(config, "rounding", "nothing is drawn here", "use minifloat_ieee");
  type.scales = given_numbers(config["scale"]);
  return {type, given_granularity(config, {"scale"})};
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
    .type = [](const Value& config) -> TypeOrReason { return parse(config); },
    .precision =
        [](const Value& config) {
          return std::vector<int64_t>{
              1 + config["exponent_width"].as_int() + config["mantissa_width"].as_int(),
              config["exponent_width"].as_int()};
        },
}};

}  // namespace
}  // namespace mase::scaled_float_format

namespace mase {

Rounder ScaledFloat::rounder(const Granularity& granularity) const {
  Rounder rounder;
  rounder.granularity = granularity;
  rounder.groups = static_cast<int64_t>(scales.size());
  rounder.width = 1 + exponent + mantissa;
  rounder.bits = rounder.width;
  rounder.shared_bits = 32;
  rounder.given = [scales = scales](int64_t group) {
    return Shared{scales.size() == 1 ? scales[0] : scales.at(static_cast<size_t>(group))};
  };
  const auto least = static_cast<float>(1 - bias - mantissa), most = static_cast<float>(largest);
  const auto limits = [scales = scales, least, most](int64_t group) {
    const auto scale = static_cast<float>(scales.at(static_cast<size_t>(group)));
    return Limits{-most * scale, most * scale, std::exp2(least) * scale};
  };
  if (scales.size() == 1)
    rounder.set_limits(limits(0));
  else
    rounder.group_limits = limits;
  rounder.one = [type = *this, least, most](const GroupRun& run, float x, uint32_t) {
    return scaled_float_format::rounded(type, least, most, static_cast<float>(run.shared[0]), x);
  };
  return rounder;
}

std::string ScaledFloat::text() const {
  return fmt::format("scaled float e{}m{}, bias {}, {}, {}", exponent, mantissa, bias,
                     rounding_name(rounding),
                     saturates      ? "saturate"
                     : has_infinity ? "infinity"
                                    : "nan");
}

}  // namespace mase
