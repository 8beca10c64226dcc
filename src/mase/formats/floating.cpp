// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/floating.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "mase/base/fields.h"
#include "mase/formats/rounder.h"

namespace mase {
namespace {

// Up to 2^30, far beyond what single precision holds: the exponent may have as many bits as a word.
int highest_exponent(int exponent_width, int bias) {
  return static_cast<int>(
      std::min<int64_t>((int64_t{1} << exponent_width) - 1 - bias, int64_t{1} << 30));
}

// k / 2^m * 2^E with k in [2^(m-1), 2^m) is 1.fraction * 2^(E-1) with m-1 fraction bits; the lowest
// exponent's smaller k are the subnormals. Other codes repeat values of lower exponents.
FloatSpec explicit_one_spec(const Float& type) {
  FloatSpec spec;
  spec.mantissa = type.mantissa - 1;
  spec.emin = std::max(-type.bias - 1, -149 + spec.mantissa);
  spec.largest =
      static_cast<float>(std::ldexp(1 - std::ldexp(1.0, -type.mantissa),
                                    std::min(highest_exponent(type.exponent, type.bias), 128)));
  return spec;
}

FloatSpec hidden_bit_spec(const Float& type) {
  const int m = type.mantissa;
  int top_field = (1 << type.exponent) - 1;
  double fraction = 2 - std::ldexp(1.0, -m);
  if (type.specials == Specials::ieee) top_field -= 1;
  if (type.specials == Specials::nan) {
    // The last code of the top exponent is taken.
    fraction -= std::ldexp(1.0, -m);
    if (m == 0) {
      top_field -= 1;
      fraction = 1;
    }
  }
  FloatSpec spec;
  spec.mantissa = m;
  // Steps finer than single precision's are exact anyway.
  spec.emin = std::max(1 - type.bias, -149 + m);
  const int top = top_field - type.bias;
  spec.largest = top > 127 ? static_cast<float>(std::ldexp(2 - std::ldexp(1.0, -m), 127))
                           : static_cast<float>(std::ldexp(fraction, top));
  // With one exponent only, the largest number is subnormal.
  if (top_field == 0) spec.largest = static_cast<float>(std::ldexp(fraction - 1, 1 - type.bias));
  spec.has_infinity = type.specials == Specials::ieee;
  spec.to_infinity = type.overflow == Overflow::infinity;
  return spec;
}

// The float whose numbers these powers of two are.
Float as_float(const Log& type) { return {type.width - 1, 0, type.bias}; }

// Codes exist where single precision holds the value of each.
bool has_codes(const Float& type) {
  const int top = highest_exponent(type.exponent, type.bias);
  if (!type.hidden_bit) return -type.bias - type.mantissa >= -149 && top <= 128;
  return top <= 128 - (type.specials != Specials::ieee) && 1 - type.bias - type.mantissa >= -149;
}
bool has_codes(const Log& type) {
  if (type.zero == Log::Zero::lowest_field) return has_codes(as_float(type));
  return highest_exponent(type.width - 1, type.bias) <= 127 && type.bias <= 148;
}

template <class Type>
Rounder float_rounder(const Type& type, const Granularity& granularity, int width) {
  const FloatSpec spec = float_spec(type);
  Rounder rounder;
  rounder.granularity = granularity;
  rounder.width = width;
  rounder.bits = width;
  rounder.set_limits(float_limits(type));
  rounder.round = [spec](const GroupRun&, const float* in, float* out, size_t count) {
    float_kernel(spec, in, out, count);
  };
  rounder.one = [spec](const GroupRun&, float x, uint32_t) { return float_reference(spec, x); };
  if (has_codes(type)) set_codes(rounder, float_codes(type));
  return rounder;
}

}  // namespace

int default_bias(int exponent_width) {
  return exponent_width == 0 ? 0 : (1 << (exponent_width - 1)) - 1;
}

FloatSpec float_spec(const Float& type) {
  FloatSpec spec = type.hidden_bit ? hidden_bit_spec(type) : explicit_one_spec(type);
  spec.rounding = type.rounding;
  return spec;
}

FloatSpec float_spec(const Log& type) {
  if (type.zero == Log::Zero::lowest_field) return float_spec(as_float(type));
  FloatSpec spec;
  spec.mantissa = 0;
  spec.emin = std::max(-type.bias, -149);
  spec.largest = static_cast<float>(
      std::ldexp(1.0, std::min(highest_exponent(type.width - 1, type.bias), 127)));
  spec.one_sided_zero = true;
  return spec;
}

Limits float_limits(const Float& type) {
  const double largest = float_spec(type).largest;
  const int least = (type.hidden_bit ? 1 : 0) - type.bias - type.mantissa;
  const double smallest = std::ldexp(1.0, least);
  return {-largest, largest, type.hidden_bit ? std::min(smallest, largest) : smallest};
}

Limits float_limits(const Log& type) {
  if (type.zero == Log::Zero::lowest_field) return float_limits(as_float(type));
  const double largest = float_spec(type).largest;
  return {-largest, largest, std::ldexp(1.0, float_spec(type).emin)};
}

CodeLayout float_codes(const Float& type) {
  return {.kind = type.hidden_bit ? CodeLayout::Kind::floating : CodeLayout::Kind::explicit_one,
          .width = type.width(),
          .mantissa = type.mantissa,
          .bias = type.bias,
          .specials = type.specials};
}

CodeLayout float_codes(const Log& type) {
  if (type.zero == Log::Zero::lowest_field) return float_codes(as_float(type));
  return {.kind = CodeLayout::Kind::power, .width = type.width, .bias = type.bias};
}

Rounder Float::rounder(const Granularity& granularity) const {
  return float_rounder(*this, granularity, width());
}
Rounder Log::rounder(const Granularity& granularity) const {
  return float_rounder(*this, granularity, width);
}

std::string Float::text() const {
  return fmt::format("float e{}m{}, bias {}, {}, {}", exponent, mantissa, bias,
                     rounding_name(rounding), overflow_name(overflow));
}
std::string Log::text() const { return fmt::format("power of two {}, bias {}", width, bias); }

Field exponent_width_field(int64_t least, int64_t most) {
  return integer_field("exponent_width", "bits of the exponent")
      .needed()
      .between(static_cast<double>(least), static_cast<double>(most));
}

Field exponent_bias_field() {
  return integer_field("exponent_bias",
                       "subtracted from the exponent field; 2^(exponent_width-1)-1 if not given")
      .between(-126, 254);
}

}  // namespace mase
