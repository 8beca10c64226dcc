// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/kernels/elementwise.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/formats/kernels/elementwise.cpp"
#include <hwy/foreach_target.h>
// foreach_target first.
#include "mase/formats/kernels/fixed-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase {
namespace HWY_NAMESPACE {

HWY_INLINE V stochastic(V x, uint32_t key, size_t index) {
  const F d;
  const U du;
  auto h = hn::Iota(du, static_cast<uint32_t>(index));
  h = hn::Add(hn::Mul(h, hn::Set(du, 0x9E3779B1u)), hn::Set(du, key));
  h = hn::Mul(hn::Xor(h, hn::ShiftRight<16>(h)), hn::Set(du, 0x85EBCA6Bu));
  h = hn::Mul(hn::Xor(h, hn::ShiftRight<13>(h)), hn::Set(du, 0xC2B2AE35u));
  h = hn::Xor(h, hn::ShiftRight<16>(h));
  const auto uniform =
      hn::Mul(hn::ConvertTo(d, hn::BitCast(I(), hn::ShiftRight<8>(h))), hn::Set(d, 0x1p-24f));
  const V below = hn::Floor(x);
  const auto up = hn::Lt(uniform, hn::Sub(x, below));
  return hn::Add(below, hn::IfThenElseZero(up, hn::Set(d, 1.0f)));
}

template <Rounding rounding, bool wraps>
void integer_sweep(const IntegerSpec& spec, const float* in, float* out, size_t count) {
  const F d;
  const V scale = hn::Set(d, spec.scale), inverse = hn::Set(d, spec.inverse);
  const V low = hn::Set(d, spec.low), high = hn::Set(d, spec.high), wrap = hn::Set(d, spec.wrap);
  sweep(in, out, count, [&](V x, size_t) HWY_ATTR {
    return to_fixed<rounding, wraps>(x, scale, inverse, low, high, wrap);
  });
}

void stochastic_sweep(const IntegerSpec& spec, const float* in, float* out, size_t count,
                      uint32_t key) {
  const F d;
  const V scale = hn::Set(d, spec.scale), inverse = hn::Set(d, spec.inverse);
  const V low = hn::Set(d, spec.low), high = hn::Set(d, spec.high), wrap = hn::Set(d, spec.wrap);
  sweep(in, out, count, [&](V x, size_t index) HWY_ATTR {
    V y = hn::Mul(x, scale);
    y = spec.wrap > 0 ? hn::Add(wrapped(stochastic(y, key, index), low, wrap), hn::Zero(d))
                      : with_sign(stochastic(hn::Max(hn::Min(y, high), low), key, index), x, low);
    return hn::IfThenElse(hn::IsNaN(x), x, hn::Mul(y, inverse));
  });
}

void Integer(const IntegerSpec& spec, const float* in, float* out, size_t count, uint32_t key) {
  if (spec.rounding == Rounding::stochastic) return stochastic_sweep(spec, in, out, count, key);
  with_rounding(spec.rounding, [&]<Rounding rounding>() {
    if (spec.wrap > 0)
      integer_sweep<rounding, true>(spec, in, out, count);
    else
      integer_sweep<rounding, false>(spec, in, out, count);
  });
}

// From here on numbers beyond the largest one become infinite.
float overflow_threshold(const FloatSpec& spec) {
  const double step = std::ldexp(1.0, std::ilogb(spec.largest) - spec.mantissa);
  if (spec.rounding == Rounding::toward_zero) return static_cast<float>(spec.largest + step);
  const auto middle = static_cast<float>(spec.largest + step / 2);
  const bool up = spec.rounding == Rounding::half_away || std::fmod(spec.largest / step, 2.0) != 0;
  return up ? middle : std::nextafter(middle, std::numeric_limits<float>::infinity());
}

template <Rounding rounding>
void float_sweep(const FloatSpec& spec, const float* in, float* out, size_t count) {
  const F d;
  const FloatRounder rounder(spec.mantissa, std::ldexp(1.0f, spec.emin), spec.largest);
  const auto infinity = hn::Inf(d);
  if (spec.to_infinity) {
    const auto threshold = hn::Set(d, overflow_threshold(spec));
    sweep(in, out, count, [&](auto x, size_t) HWY_ATTR {
      const auto a = hn::Abs(x);
      const auto r = hn::IfThenElse(hn::Ge(a, threshold), infinity, rounder.round<rounding>(a));
      return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySignToAbs(r, x));
    });
  } else if (spec.has_infinity) {
    sweep(in, out, count, [&](auto x, size_t) HWY_ATTR {
      const auto a = hn::Abs(x);
      const auto r = hn::CopySignToAbs(rounder.round<rounding>(a), x);
      return hn::IfThenElse(hn::Lt(a, infinity), r, x);
    });
  } else if (spec.one_sided_zero) {
    sweep(in, out, count, [&](auto x, size_t) HWY_ATTR {
      const auto r = hn::CopySignToAbs(rounder.round<rounding>(hn::Abs(x)), x);
      return hn::IfThenElse(hn::IsNaN(x), x, rounder.without_least_negative(r, x));
    });
  } else {
    sweep(in, out, count, [&](auto x, size_t) HWY_ATTR {
      const auto r = hn::CopySignToAbs(rounder.round<rounding>(hn::Abs(x)), x);
      return hn::IfThenElse(hn::IsNaN(x), x, r);
    });
  }
}

void RoundFloat(const FloatSpec& spec, const float* in, float* out, size_t count) {
  if (spec.rounding == Rounding::nearest_even)
    float_sweep<Rounding::nearest_even>(spec, in, out, count);
  else if (spec.rounding == Rounding::half_away)
    float_sweep<Rounding::half_away>(spec, in, out, count);
  else
    float_sweep<Rounding::toward_zero>(spec, in, out, count);
}

// With single precision's own exponents, rounding is integer arithmetic on the bits: the carry
// runs into the exponent by itself and subnormals need no case of their own.
void FloatByBits(const FloatSpec& spec, const float* in, float* out, size_t count) {
  const F d;
  const I di;
  const int shift = 23 - spec.mantissa;
  const bool to_even = spec.rounding == Rounding::nearest_even;
  const bool truncate = spec.rounding == Rounding::toward_zero;
  const auto magnitude = hn::Set(di, 0x7FFFFFFF);
  const auto half = hn::Set(di, truncate ? 0 : (1 << (shift - 1)) - (to_even ? 1 : 0));
  const auto last_bit = hn::Set(di, to_even ? 1 : 0);
  const auto keep = hn::Set(di, ~((1 << shift) - 1));
  const auto limit =
      hn::Set(di, spec.to_infinity ? 0x7F800000 : std::bit_cast<int32_t>(spec.largest));
  const auto last_ordinary = hn::Set(di, spec.has_infinity ? 0x7F7FFFFF : 0x7F800000);
  sweep(in, out, count, [&](auto x, size_t) HWY_ATTR {
    const auto bits = hn::BitCast(di, x);
    const auto a = hn::And(bits, magnitude);
    const auto special = hn::Gt(a, last_ordinary);
    const auto even = hn::And(hn::ShiftRightSame(a, shift), last_bit);
    // NaN payloads could run over into the sign; they are replaced below.
    auto r = hn::And(hn::Add(hn::Add(a, half), even), keep);
    r = hn::Or(hn::Min(r, limit), hn::AndNot(magnitude, bits));
    return hn::BitCast(d, hn::IfThenElse(special, bits, r));
  });
}

void ClippedGradient(float low, float high, const float* in, const float* grad_out, float* grad_in,
                     size_t count) {
  const F d;
  const auto lo = hn::Set(d, low), hi = hn::Set(d, high);
  const size_t lanes = hn::Lanes(d), whole = count - count % lanes;
  size_t i = 0;
  for (; i < whole; i += lanes) {
    const auto x = hn::LoadU(d, in + i);
    const auto inside = hn::And(hn::Ge(x, lo), hn::Le(x, hi));
    hn::StoreU(hn::IfThenElseZero(inside, hn::LoadU(d, grad_out + i)), d, grad_in + i);
  }
  for (; i < count; ++i) grad_in[i] = in[i] >= low && in[i] <= high ? grad_out[i] : 0.0f;
}

}  // namespace HWY_NAMESPACE
}  // namespace mase
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase {

HWY_EXPORT(Integer);
HWY_EXPORT(RoundFloat);
HWY_EXPORT(FloatByBits);
HWY_EXPORT(ClippedGradient);

void integer_kernel(const IntegerSpec& spec, const float* in, float* out, size_t count,
                    uint32_t key) {
  HWY_DYNAMIC_DISPATCH(Integer)(spec, in, out, count, key);
}

float integer_reference(const IntegerSpec& spec, float x, uint32_t key, uint32_t element) {
  if (std::isnan(x)) return x;
  const float uniform =
      spec.rounding == Rounding::stochastic ? stochastic_uniform(key, element) : 0.0f;
  float y = x * spec.scale;
  if (spec.wrap > 0) {
    if (std::isinf(y)) return 0;
    // By the definition, in double precision: exact for all whole numbers that a float holds.
    const double whole = round_to_whole(y, spec.rounding, uniform);
    double rest = std::fmod(whole, static_cast<double>(spec.wrap));
    if (rest < spec.low) rest += spec.wrap;
    if (rest >= spec.low + spec.wrap) rest -= spec.wrap;
    return static_cast<float>(rest) * spec.inverse + 0.0f;
  }
  y = y > spec.high ? spec.high : y < spec.low ? spec.low : y;
  const float value = round_to_whole(y, spec.rounding, uniform) * spec.inverse;
  if (value != 0) return value;
  return spec.low < 0 ? std::copysign(0.0f, x) : 0.0f;
}

void float_kernel(const FloatSpec& spec, const float* in, float* out, size_t count) {
  const int top = std::ilogb(spec.largest);
  if (spec.mantissa <= 21 && spec.emin >= -126 && top + 24 - spec.mantissa <= 127)
    return HWY_DYNAMIC_DISPATCH(RoundFloat)(spec, in, out, count);
  if (spec.mantissa >= 1 && spec.mantissa <= 22 && spec.emin == -126 && !spec.one_sided_zero)
    return HWY_DYNAMIC_DISPATCH(FloatByBits)(spec, in, out, count);
  // Numbers that single precision itself holds as subnormals or not at all: nobody's choice for
  // speed.
  for (size_t i = 0; i < count; ++i) out[i] = float_reference(spec, in[i]);
}

float float_reference(const FloatSpec& spec, float x) {
  if (std::isnan(x)) return x;  // with its payload
  return static_cast<float>(float_reference(spec, static_cast<double>(x)));
}

double float_reference(const FloatSpec& spec, double x) {
  if (std::isnan(x)) return x;
  if (std::isinf(x)) return spec.has_infinity ? x : std::copysign(spec.largest, x);
  const double a = std::fabs(x);
  if (a == 0) return x;
  const int exponent = std::max(std::ilogb(a), spec.emin);
  const double step = std::ldexp(1.0, exponent - spec.mantissa);
  double value = round_to_whole(a / step, spec.rounding) * step;
  if (value > spec.largest)
    value = spec.to_infinity ? std::numeric_limits<double>::infinity() : spec.largest;
  const double smallest = std::ldexp(1.0, spec.emin);
  if (spec.one_sided_zero && x < 0 && value == smallest) return a > smallest ? -2 * smallest : 0.0;
  return std::copysign(value, x);
}

void clipped_gradient_kernel(float low, float high, const float* in, const float* grad_out,
                             float* grad_in, size_t count) {
  HWY_DYNAMIC_DISPATCH(ClippedGradient)(low, high, in, grad_out, grad_in, count);
}

}  // namespace mase
#endif
