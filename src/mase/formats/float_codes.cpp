// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/float_codes.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace mase {

int default_bias(int exponent_width) {
  return exponent_width == 0 ? 0 : (1 << (exponent_width - 1)) - 1;
}

FloatSpec float_spec(const FloatLayout& layout) {
  const int m = layout.mantissa_width;
  int top_field = (1 << layout.exponent_width) - 1;
  double fraction = 2 - std::ldexp(1.0, -m);
  if (layout.specials == Specials::ieee) top_field -= 1;
  if (layout.specials == Specials::nan) {
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
  spec.emin = std::max(1 - layout.bias, -149 + m);
  const int top = top_field - layout.bias;
  spec.largest = top > 127 ? static_cast<float>(std::ldexp(2 - std::ldexp(1.0, -m), 127))
                           : static_cast<float>(std::ldexp(fraction, top));
  // With one exponent only, the largest number is subnormal.
  if (top_field == 0) spec.largest = static_cast<float>(std::ldexp(fraction - 1, 1 - layout.bias));
  spec.has_infinity = layout.specials == Specials::ieee;
  return spec;
}

uint32_t float_code(const FloatLayout& layout, float value) {
  const int m = layout.mantissa_width;
  const uint32_t sign = std::signbit(value) ? 1u << (layout.width() - 1) : 0;
  const uint32_t exponent_ones = ((1u << layout.exponent_width) - 1) << m;
  if (std::isnan(value)) {
    if (layout.specials == Specials::none) return 0;  // there is no code for it
    if (layout.specials == Specials::nan) return sign | exponent_ones | ((1u << m) - 1);
    const uint32_t payload = (std::bit_cast<uint32_t>(value) & 0x7FFFFF) >> (23 - m);
    return sign | exponent_ones | (payload ? payload : 1u << (m - 1));
  }
  if (std::isinf(value)) return sign | exponent_ones;
  const double a = std::fabs(static_cast<double>(value));
  if (a == 0) return sign;
  const int emin = 1 - layout.bias;
  const int exponent = std::max(std::ilogb(a), emin);
  // The hidden bit adds one to the exponent field.
  const auto significand = static_cast<uint32_t>(std::ldexp(a, m - exponent));
  return sign | ((static_cast<uint32_t>(exponent - emin) << m) + significand);
}

float float_value(const FloatLayout& layout, uint32_t code) {
  const int m = layout.mantissa_width;
  const bool negative = code >> (layout.width() - 1) & 1;
  const uint32_t fraction = code & ((1u << m) - 1);
  const uint32_t field = code >> m & ((1u << layout.exponent_width) - 1);
  const bool top = field == (1u << layout.exponent_width) - 1;
  if (layout.specials == Specials::ieee && top) {
    const uint32_t bits = 0x7F800000u | fraction << (23 - m) | (negative ? 0x80000000u : 0);
    return std::bit_cast<float>(bits);
  }
  if (layout.specials == Specials::nan && top && fraction == (1u << m) - 1)
    return std::copysign(std::numeric_limits<float>::quiet_NaN(), negative ? -1.0f : 1.0f);
  const double significand = fraction + (field ? std::ldexp(1.0, m) : 0.0);
  const int exponent = std::max(static_cast<int>(field), 1) - layout.bias;
  const double value = std::ldexp(significand, exponent - m);
  return static_cast<float>(negative ? -value : value);
}

ElementwiseFormat float_format(const FloatLayout& layout, const FloatSpec& spec) {
  ElementwiseFormat format;
  format.kernel = [spec](const float* in, float* out, size_t count, uint64_t) {
    float_kernel(spec, in, out, count);
  };
  format.reference = [spec](float x, uint64_t, uint32_t) { return float_reference(spec, x); };
  format.bits = layout.width();
  format.largest = spec.largest;
  format.lowest = -format.largest;
  format.smallest_positive =
      std::min(std::ldexp(1.0, 1 - layout.bias - layout.mantissa_width), format.largest);
  const int top = (1 << layout.exponent_width) - 1 - layout.bias;
  if (top <= 128 - (layout.specials != Specials::ieee) &&
      1 - layout.bias - layout.mantissa_width >= -149) {
    format.code_bits = layout.width();
    format.code_of = [layout](float x) { return float_code(layout, x); };
    format.value_of = [layout](uint32_t code) { return float_value(layout, code); };
  }
  return format;
}

Field exponent_width_field(int64_t least, int64_t most) {
  return {.name = "exponent_width",
          .type = FieldType::integer,
          .help = "bits of the exponent",
          .required = true,
          .minimum = static_cast<double>(least),
          .maximum = static_cast<double>(most)};
}

Field exponent_bias_field() {
  return {.name = "exponent_bias",
          .type = FieldType::integer,
          .help = "subtracted from the exponent field; 2^(exponent_width-1)-1 if not given",
          .minimum = -126,
          .maximum = 254};
}

}  // namespace mase
