// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/reference_rules.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>

namespace mase {
namespace {

float power(float exponent) { return std::exp2(exponent); }
float sign(float x) { return x > 0 ? 1.0f : x < 0 ? -1.0f : x; }
// As torch's clamp: the upper limit wins. Words without room for a sign have limits that cross.
float cut(float x, float lowest, float highest) { return std::min(std::max(x, lowest), highest); }
float top_exponent(int exponent_width, int bias) {
  return static_cast<float>((int64_t{1} << exponent_width) - 1 - bias);
}

}  // namespace

Rounder reference_rounder(const NumberType& like, std::function<float(float)> rule) {
  Rounder rounder = like.rounder();
  rounder.code_bits = 0;
  rounder.round = {};
  rounder.one = [rule = std::move(rule)](const GroupRun&, float x, uint32_t) { return rule(x); };
  return rounder;
}

float rounded_log2(float x) { return static_cast<float>(std::log2(static_cast<double>(x))); }

float reference_sign(float x) { return sign(x + 1e-9f); }

float reference_minifloat_ieee(float x, int exponent_width, int mantissa, int bias) {
  if (!std::isfinite(x)) return std::numeric_limits<float>::quiet_NaN();
  const float a = std::fabs(x);
  if (a <= 1e-8f) return x;
  const auto lowest = static_cast<float>(-bias);
  const float exponent =
      std::clamp(std::floor(rounded_log2(a + 1e-9f)), lowest, top_exponent(exponent_width, bias));
  const float steps = power(static_cast<float>(mantissa));
  const float significand = a / power(exponent);
  if (exponent == lowest) {
    const float k = cut(std::nearbyint(significand * steps / 2), 0.0f, steps - 1);
    return reference_sign(x) * (power(exponent) * (2 * k / steps));
  }
  const float k = cut(std::nearbyint((significand - 1) * steps), 0.0f, steps - 1);
  return reference_sign(x) * (power(exponent) * (1 + k / steps));
}

float reference_minifloat_denorm(float x, int exponent_width, int mantissa, int bias) {
  if (!std::isfinite(x)) return std::numeric_limits<float>::quiet_NaN();
  const float a = std::fabs(x);
  if (a <= 1e-8f) return x;
  const float exponent = std::clamp(std::ceil(rounded_log2(a + 1e-9f)), static_cast<float>(-bias),
                                    top_exponent(exponent_width, bias));
  const float steps = power(static_cast<float>(mantissa));
  const float k = cut(std::nearbyint(a / power(exponent) * steps), 0.0f, steps - 1);
  return reference_sign(x) * (power(exponent) * (k / steps));
}

float reference_log(float x, int exponent_width, int bias) {
  if (std::isnan(x)) return x;
  const auto offset = static_cast<float>(0.1 * std::ldexp(1.0, -bias));
  const float exponent = std::clamp(std::nearbyint(rounded_log2(std::fabs(x) + offset)),
                                    static_cast<float>(-bias), top_exponent(exponent_width, bias));
  return sign(x + offset) * power(exponent);
}

}  // namespace mase
