// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/kernels/codes.h"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/formats/kernels/codes.cpp"
#include <hwy/foreach_target.h>
// foreach_target first.
#include "mase/formats/kernels/sweep-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase {
namespace HWY_NAMESPACE {

HWY_INLINE VU word(uint32_t value) { return hn::Set(U(), value); }
HWY_INLINE VU zero_if_nan(V x, VU code) {
  return hn::IfThenZeroElse(hn::RebindMask(U(), hn::IsNaN(x)), code);
}
HWY_INLINE uint32_t ones(int bits) { return bits >= 32 ? ~0u : (1u << bits) - 1; }

void EncodeWhole(const CodeLayout& layout, const float* values, uint32_t* codes, size_t count) {
  const V scale = hn::Set(F(), layout.scale), half = hn::Set(F(), 0x1p31f);
  const VU mask = word(ones(layout.width)), top = word(0x80000000u);
  sweep(values, codes, count, [&](V x, size_t) HWY_ATTR {
    const V y = hn::Mul(x, scale);
    // Unsigned numbers of 32 bits exceed the signed conversion.
    const auto big = hn::Ge(y, half);
    const V low = hn::Sub(y, hn::IfThenElseZero(big, half));
    const VU code = hn::BitCast(U(), hn::ConvertTo(I(), low));
    const VU moved = hn::Xor(code, hn::IfThenElseZero(hn::RebindMask(U(), big), top));
    return zero_if_nan(x, hn::And(moved, mask));
  });
}

void DecodeWhole(const CodeLayout& layout, const uint32_t* codes, float* values, size_t count) {
  const V inverse = hn::Set(F(), 1 / layout.scale);
  const int spare = 32 - layout.width;
  if (layout.is_signed) {
    sweep(codes, values, count, [&](VU code, size_t) HWY_ATTR {
      const VI number = hn::BitCast(I(), hn::ShiftLeftSame(code, spare));
      return hn::Mul(hn::ConvertTo(F(), hn::ShiftRightSame(number, spare)), inverse);
    });
    return;
  }
  const VU mask = word(ones(layout.width)), low_half = word(0xFFFF);
  const V upper = hn::Set(F(), 65536.0f);
  sweep(codes, values, count, [&](VU code, size_t) HWY_ATTR {
    // In two halves, since there is no unsigned conversion; only the sum is rounded.
    const VU number = hn::And(code, mask);
    const V low = hn::ConvertTo(F(), hn::BitCast(I(), hn::And(number, low_half)));
    const V high = hn::ConvertTo(F(), hn::BitCast(I(), hn::ShiftRight<16>(number)));
    return hn::Mul(hn::Add(hn::Mul(high, upper), low), inverse);
  });
}

void EncodeSignMagnitude(const CodeLayout& layout, const float* values, uint32_t* codes,
                         size_t count) {
  const int sign_at = layout.width - 1;
  sweep(values, codes, count, [&](V x, size_t) HWY_ATTR {
    const VU sign = hn::ShiftLeftSame(hn::ShiftRight<31>(hn::BitCast(U(), x)), sign_at);
    return zero_if_nan(x, hn::Or(sign, hn::BitCast(U(), hn::ConvertTo(I(), hn::Abs(x)))));
  });
}

HWY_INLINE VU sign_of_code(VU code, int width) {
  return hn::And(hn::ShiftLeftSame(code, 32 - width), word(0x80000000u));
}

void DecodeSignMagnitude(const CodeLayout& layout, const uint32_t* codes, float* values,
                         size_t count) {
  const VU mask = word(ones(layout.width - 1));
  sweep(codes, values, count, [&](VU code, size_t) HWY_ATTR {
    const V magnitude = hn::ConvertTo(F(), hn::BitCast(I(), hn::And(code, mask)));
    return hn::Or(magnitude, hn::BitCast(F(), sign_of_code(code, layout.width)));
  });
}

// Exponent field and fraction of a magnitude that has this many fraction bits, and back. Normal
// numbers are a shift and another bias. Subnormal ones are the low bits of the sum with a number
// whose last place is the format's smallest step; single precision's own need no such sum.
struct FloatFields {
  int shift;
  bool own_subnormals;
  VU rebias, first_normal, step_bits;
  V smallest_normal, step;

  FloatFields(int mantissa, int emin) : shift(23 - mantissa), own_subnormals(emin == -126) {
    rebias = word(static_cast<uint32_t>(emin + 126) << 23);
    first_normal = word(1u << mantissa);
    smallest_normal = hn::Set(F(), std::ldexp(1.0f, emin));
    step = hn::Set(F(), own_subnormals ? 0.0f : std::ldexp(1.0f, emin + shift));
    step_bits = hn::BitCast(U(), step);
  }
  HWY_INLINE VU fields(V magnitude) const {
    const VU bits = hn::BitCast(U(), magnitude);
    const VU normal = hn::ShiftRightSame(hn::Sub(bits, rebias), shift);
    if (own_subnormals) return normal;
    const VU subnormal = hn::Sub(hn::BitCast(U(), hn::Add(magnitude, step)), step_bits);
    const auto is_subnormal = hn::RebindMask(U(), hn::Lt(magnitude, smallest_normal));
    return hn::IfThenElse(is_subnormal, subnormal, normal);
  }
  HWY_INLINE V magnitude(VU fields) const {
    const V normal = hn::BitCast(F(), hn::Add(hn::ShiftLeftSame(fields, shift), rebias));
    if (own_subnormals) return normal;
    const V subnormal = hn::Sub(hn::BitCast(F(), hn::Add(fields, step_bits)), step);
    return hn::IfThenElse(hn::RebindMask(F(), hn::Lt(fields, first_normal)), subnormal, normal);
  }
};

void EncodeFloating(const CodeLayout& layout, const float* values, uint32_t* codes, size_t count) {
  const int m = layout.mantissa, sign_at = layout.width - 1;
  const FloatFields float_fields(m, 1 - layout.bias);
  const VU exponent_ones = word(ones(sign_at) & ~ones(m)), all_ones = word(ones(sign_at));
  const VU quiet = word(m ? 1u << (m - 1) : 0);
  const VU mask = word(0x7FFFFFFF), fraction = word(0x7FFFFF), infinity = word(0x7F800000);
  sweep(values, codes, count, [&](V x, size_t) HWY_ATTR {
    const VU bits = hn::And(hn::BitCast(U(), x), mask);
    const VU sign = hn::ShiftLeftSame(hn::ShiftRight<31>(hn::BitCast(U(), x)), sign_at);
    const VU finite = float_fields.fields(hn::BitCast(F(), bits));
    if (layout.specials == Specials::none) return zero_if_nan(x, hn::Or(sign, finite));
    const auto is_nan = hn::Gt(bits, infinity);
    if (layout.specials == Specials::nan)
      return hn::Or(sign, hn::IfThenElse(is_nan, all_ones, finite));
    // Of the payload as much as there is room for, but not none.
    VU payload = hn::ShiftRightSame(hn::And(bits, fraction), float_fields.shift);
    payload = hn::IfThenElse(hn::And(is_nan, hn::Eq(payload, word(0))), quiet, payload);
    const auto is_special = hn::Not(hn::Lt(bits, infinity));
    return hn::Or(sign, hn::IfThenElse(is_special, hn::Or(exponent_ones, payload), finite));
  });
}

void DecodeFloating(const CodeLayout& layout, const uint32_t* codes, float* values, size_t count) {
  const int m = layout.mantissa;
  const FloatFields float_fields(m, 1 - layout.bias);
  const VU mask = word(ones(layout.width - 1)),
           exponent_ones = word(ones(layout.width - 1) & ~ones(m));
  const VU quiet = hn::BitCast(U(), hn::Set(F(), std::numeric_limits<float>::quiet_NaN()));
  const VU infinity = word(0x7F800000), fraction = word(ones(m));
  sweep(codes, values, count, [&](VU code, size_t) HWY_ATTR {
    const VU fields = hn::And(code, mask);
    VU result = hn::BitCast(U(), float_fields.magnitude(fields));
    if (layout.specials == Specials::nan) {
      result = hn::IfThenElse(hn::Eq(fields, mask), quiet, result);
    } else if (layout.specials == Specials::ieee) {
      const VU special =
          hn::Or(infinity, hn::ShiftLeftSame(hn::And(fields, fraction), float_fields.shift));
      const auto is_special = hn::Eq(hn::And(fields, exponent_ones), exponent_ones);
      result = hn::IfThenElse(is_special, special, result);
    }
    return hn::BitCast(F(), hn::Or(result, sign_of_code(code, layout.width)));
  });
}

// k / 2^m * 2^E with k in [2^(m-1), 2^m) is 1.fraction * 2^(E-1) with m-1 fraction bits.
void EncodeExplicitOne(const CodeLayout& layout, const float* values, uint32_t* codes,
                       size_t count) {
  const int m = layout.mantissa, sign_at = layout.width - 1;
  const FloatFields float_fields(m - 1, -layout.bias - 1);
  const VU one = word(1u << (m - 1)), fraction = word(ones(m - 1));
  sweep(values, codes, count, [&](V x, size_t) HWY_ATTR {
    const VU sign = hn::ShiftLeftSame(hn::ShiftRight<31>(hn::BitCast(U(), x)), sign_at);
    const VU fields = float_fields.fields(hn::Abs(x));
    const VU field = hn::ShiftRightSame(fields, m - 1);
    const VU normal = hn::Or(hn::ShiftLeftSame(hn::Sub(field, word(1)), m),
                             hn::Or(one, hn::And(fields, fraction)));
    const VU code = hn::IfThenElse(hn::Eq(field, word(0)), fields, normal);
    return zero_if_nan(x, hn::Or(sign, code));
  });
}

void DecodeExplicitOne(const CodeLayout& layout, const uint32_t* codes, float* values,
                       size_t count) {
  const int m = layout.mantissa;
  const VU significand = word(ones(m)), exponent = word(ones(layout.width - 1 - m));
  const VU offset = word(static_cast<uint32_t>(127 - layout.bias - m));
  sweep(codes, values, count, [&](VU code, size_t) HWY_ATTR {
    const V k = hn::ConvertTo(F(), hn::BitCast(I(), hn::And(code, significand)));
    const VU field = hn::And(hn::ShiftRightSame(code, m), exponent);
    const V power = hn::BitCast(F(), hn::ShiftLeft<23>(hn::Add(field, offset)));
    return hn::Or(hn::Mul(k, power), hn::BitCast(F(), sign_of_code(code, layout.width)));
  });
}

void EncodePower(const CodeLayout& layout, const float* values, uint32_t* codes, size_t count) {
  const int sign_at = layout.width - 1;
  const VU zero_code = word(1u << sign_at), offset = word(static_cast<uint32_t>(layout.bias - 127));
  const VU mask = word(0x7FFFFFFF), infinity = word(0x7F800000);
  sweep(values, codes, count, [&](V x, size_t) HWY_ATTR {
    const VU bits = hn::And(hn::BitCast(U(), x), mask);
    const VU sign = hn::ShiftLeftSame(hn::ShiftRight<31>(hn::BitCast(U(), x)), sign_at);
    const VU code = hn::Or(sign, hn::Add(hn::ShiftRight<23>(bits), offset));
    const auto none = hn::Or(hn::Eq(bits, word(0)), hn::Gt(bits, infinity));
    return hn::IfThenElse(none, zero_code, code);
  });
}

void DecodePower(const CodeLayout& layout, const uint32_t* codes, float* values, size_t count) {
  const VU mask = word(ones(layout.width)), exponent = word(ones(layout.width - 1));
  const VU zero_code = word(1u << (layout.width - 1));
  const VU offset = word(static_cast<uint32_t>(127 - layout.bias));
  sweep(codes, values, count, [&](VU code, size_t) HWY_ATTR {
    const VU bits = hn::ShiftLeft<23>(hn::Add(hn::And(code, exponent), offset));
    const VU value = hn::Or(bits, sign_of_code(code, layout.width));
    return hn::BitCast(F(), hn::IfThenZeroElse(hn::Eq(hn::And(code, mask), zero_code), value));
  });
}

void Encode(const CodeLayout& layout, const float* values, uint32_t* codes, size_t count) {
  switch (layout.kind) {
    case CodeLayout::Kind::whole:
      return EncodeWhole(layout, values, codes, count);
    case CodeLayout::Kind::sign_magnitude:
      return EncodeSignMagnitude(layout, values, codes, count);
    case CodeLayout::Kind::floating:
      return EncodeFloating(layout, values, codes, count);
    case CodeLayout::Kind::explicit_one:
      return EncodeExplicitOne(layout, values, codes, count);
    case CodeLayout::Kind::power:
      return EncodePower(layout, values, codes, count);
  }
}

void Decode(const CodeLayout& layout, const uint32_t* codes, float* values, size_t count) {
  switch (layout.kind) {
    case CodeLayout::Kind::whole:
      return DecodeWhole(layout, codes, values, count);
    case CodeLayout::Kind::sign_magnitude:
      return DecodeSignMagnitude(layout, codes, values, count);
    case CodeLayout::Kind::floating:
      return DecodeFloating(layout, codes, values, count);
    case CodeLayout::Kind::explicit_one:
      return DecodeExplicitOne(layout, codes, values, count);
    case CodeLayout::Kind::power:
      return DecodePower(layout, codes, values, count);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace mase
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase {

HWY_EXPORT(Encode);
HWY_EXPORT(Decode);

namespace {

// Exponents that the vector kernels form as normal numbers of single precision.
bool is_vectorizable(const CodeLayout& layout) {
  const int m = layout.mantissa;
  const auto normal = [](int exponent) { return exponent >= -126 && exponent <= 127; };
  switch (layout.kind) {
    case CodeLayout::Kind::whole:
    case CodeLayout::Kind::sign_magnitude:
      return true;
    case CodeLayout::Kind::floating:
      return layout.bias == 127 || (1 - layout.bias > -126 && normal(24 - layout.bias - m));
    case CodeLayout::Kind::explicit_one: {
      const int top = (1 << (layout.width - 1 - m)) - 1 - layout.bias;
      return normal(-layout.bias - m) && normal(top - m) && normal(23 - layout.bias - m) &&
             -layout.bias - 1 > -126;
    }
    case CodeLayout::Kind::power:
      return normal(-layout.bias) && normal((1 << (layout.width - 1)) - 1 - layout.bias);
  }
  return false;
}

}  // namespace

void encode_kernel(const CodeLayout& layout, const float* values, uint32_t* codes, size_t count) {
  if (is_vectorizable(layout)) return HWY_DYNAMIC_DISPATCH(Encode)(layout, values, codes, count);
  for (size_t i = 0; i < count; ++i) codes[i] = code_of(layout, values[i]);
}

void decode_kernel(const CodeLayout& layout, const uint32_t* codes, float* values, size_t count) {
  if (is_vectorizable(layout)) return HWY_DYNAMIC_DISPATCH(Decode)(layout, codes, values, count);
  for (size_t i = 0; i < count; ++i) values[i] = value_of(layout, codes[i]);
}

}  // namespace mase
#endif
