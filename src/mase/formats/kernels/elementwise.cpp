// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/kernels/elementwise.h"

#include <bit>
#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/formats/kernels/elementwise.cpp"
#include <hwy/foreach_target.h>
// foreach_target first.
#include <hwy/cache_control.h>
#include <hwy/highway.h>

#ifndef MASE_FORMATS_ELEMENTWISE_ONCE
#define MASE_FORMATS_ELEMENTWISE_ONCE
namespace mase {
// Arrays above this size leave the caches anyway: their stores need not read the line first.
inline constexpr size_t streaming_count = size_t{1} << 21;
}  // namespace mase
#endif

HWY_BEFORE_NAMESPACE();
namespace mase {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;
using U = hn::RebindToUnsigned<F>;

// Applies `body(vector, index)` to the whole array; the tail goes through a small buffer, so that
// every value takes the same path.
template <class Body>
HWY_INLINE void sweep(const float* in, float* out, size_t count, const Body& body) {
  const F d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  const bool stream = count >= streaming_count && in != out &&
                      reinterpret_cast<uintptr_t>(out) % (lanes * sizeof(float)) == 0;
  if (stream) {
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
      const auto a = body(hn::LoadU(d, in + i), i);
      const auto b = body(hn::LoadU(d, in + i + lanes), i + lanes);
      const auto c = body(hn::LoadU(d, in + i + 2 * lanes), i + 2 * lanes);
      const auto e = body(hn::LoadU(d, in + i + 3 * lanes), i + 3 * lanes);
      hn::Stream(a, d, out + i);
      hn::Stream(b, d, out + i + lanes);
      hn::Stream(c, d, out + i + 2 * lanes);
      hn::Stream(e, d, out + i + 3 * lanes);
    }
    hwy::FlushStream();
  } else {
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
      const auto a = body(hn::LoadU(d, in + i), i);
      const auto b = body(hn::LoadU(d, in + i + lanes), i + lanes);
      hn::StoreU(a, d, out + i);
      hn::StoreU(b, d, out + i + lanes);
    }
  }
  for (; i + lanes <= count; i += lanes) hn::StoreU(body(hn::LoadU(d, in + i), i), d, out + i);
  if (i < count) {
    HWY_ALIGN float buffer[HWY_MAX_BYTES / sizeof(float)] = {};
    for (size_t k = 0; i + k < count; ++k) buffer[k] = in[i + k];
    hn::Store(body(hn::Load(d, buffer), i), d, buffer);
    for (size_t k = 0; i + k < count; ++k) out[i + k] = buffer[k];
  }
}

template <class V>
HWY_INLINE V half_away(V x) {
  const F d;
  const V whole = hn::Trunc(x);
  const auto up = hn::Ge(hn::Abs(hn::Sub(x, whole)), hn::Set(d, 0.5f));
  return hn::Add(whole, hn::IfThenElseZero(up, hn::CopySign(hn::Set(d, 1.0f), x)));
}

template <class V>
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

template <Rounding rounding>
HWY_INLINE void integer_sweep(const IntegerSpec& spec, const float* in, float* out, size_t count,
                              uint32_t key) {
  const F d;
  const auto scale = hn::Set(d, spec.scale), inverse = hn::Set(d, spec.inverse);
  const auto low = hn::Set(d, spec.low), high = hn::Set(d, spec.high);
  sweep(in, out, count, [&](auto x, size_t index) HWY_ATTR {
    auto y = hn::Mul(x, scale);
    // Clamping first keeps every intermediate finite; whole limits make the order irrelevant.
    y = hn::Max(hn::Min(y, high), low);
    if constexpr (rounding == Rounding::nearest_even) y = hn::Round(y);
    if constexpr (rounding == Rounding::half_away) y = half_away(y);
    if constexpr (rounding == Rounding::toward_zero) y = hn::Trunc(y);
    if constexpr (rounding == Rounding::floor) y = hn::Floor(y);
    if constexpr (rounding == Rounding::stochastic) y = stochastic(y, key, index);
    y = hn::Mul(y, inverse);
    return hn::IfThenElse(hn::IsNaN(x), x, y);
  });
}

void Integer(const IntegerSpec& spec, const float* in, float* out, size_t count, uint32_t key) {
  switch (spec.rounding) {
    case Rounding::nearest_even:
      return integer_sweep<Rounding::nearest_even>(spec, in, out, count, key);
    case Rounding::half_away:
      return integer_sweep<Rounding::half_away>(spec, in, out, count, key);
    case Rounding::toward_zero:
      return integer_sweep<Rounding::toward_zero>(spec, in, out, count, key);
    case Rounding::floor:
      return integer_sweep<Rounding::floor>(spec, in, out, count, key);
    case Rounding::stochastic:
      return integer_sweep<Rounding::stochastic>(spec, in, out, count, key);
  }
}

// Adding 1.5 * 2^(E + 23 - m) leaves exactly m fraction bits of a number with exponent E, rounded
// to nearest even by the adder itself. Needs E + 24 - m <= 127 for the largest E.
void FloatByAdding(const FloatSpec& spec, const float* in, float* out, size_t count) {
  const F d;
  const auto largest = hn::Set(d, spec.largest);
  const auto smallest = hn::Set(d, std::ldexp(1.0f, spec.emin));
  const auto magic = hn::Set(d, std::ldexp(1.5f, 23 - spec.mantissa));
  const auto exponent_bits = hn::BitCast(d, hn::Set(I(), 0x7F800000));
  const auto infinity = hn::Inf(d);
  const auto round = [&](auto a) HWY_ATTR {
    a = hn::Min(a, largest);
    const auto c = hn::Mul(hn::Max(hn::And(a, exponent_bits), smallest), magic);
    return hn::Sub(hn::Add(a, c), c);
  };
  if (spec.to_infinity) {
    // Half a step above the largest number; a tie goes to the even neighbour.
    const int top = std::ilogb(spec.largest);
    const double step = std::ldexp(1.0, top - spec.mantissa);
    const bool odd = std::fmod(spec.largest / step, 2.0) != 0;
    const float limit = static_cast<float>(spec.largest + step / 2);
    const auto threshold =
        hn::Set(d, odd ? limit : std::nextafter(limit, std::numeric_limits<float>::infinity()));
    sweep(in, out, count, [&](auto x, size_t) HWY_ATTR {
      const auto a = hn::Abs(x);
      const auto r = hn::IfThenElse(hn::Ge(a, threshold), infinity, round(a));
      return hn::IfThenElse(hn::IsNaN(x), x, hn::CopySignToAbs(r, x));
    });
  } else if (spec.has_infinity) {
    sweep(in, out, count, [&](auto x, size_t) HWY_ATTR {
      const auto a = hn::Abs(x);
      return hn::IfThenElse(hn::Lt(a, infinity), hn::CopySignToAbs(round(a), x), x);
    });
  } else if (spec.one_sided_zero) {
    // -2^emin is zero's code: what would round to it goes to 0 or to -2^(emin+1).
    const auto lost = hn::Neg(smallest), next = hn::Add(lost, lost);
    sweep(in, out, count, [&](auto x, size_t) HWY_ATTR {
      auto r = hn::CopySignToAbs(round(hn::Abs(x)), x);
      const auto other = hn::IfThenElseZero(hn::Lt(x, lost), next);
      r = hn::IfThenElse(hn::Eq(r, lost), other, r);
      return hn::IfThenElse(hn::IsNaN(x), x, r);
    });
  } else {
    sweep(in, out, count, [&](auto x, size_t) HWY_ATTR {
      const auto r = hn::CopySignToAbs(round(hn::Abs(x)), x);
      return hn::IfThenElse(hn::IsNaN(x), x, r);
    });
  }
}

// With single precision's own exponents, rounding is integer arithmetic on the bits: the carry
// runs into the exponent by itself and subnormals need no case of their own.
void FloatByBits(const FloatSpec& spec, const float* in, float* out, size_t count) {
  const F d;
  const I di;
  const int shift = 23 - spec.mantissa;
  const auto magnitude = hn::Set(di, 0x7FFFFFFF), one = hn::Set(di, 1);
  const auto half = hn::Set(di, (1 << (shift - 1)) - 1);
  const auto keep = hn::Set(di, ~((1 << shift) - 1));
  const auto limit =
      hn::Set(di, spec.to_infinity ? 0x7F800000 : std::bit_cast<int32_t>(spec.largest));
  const auto last_ordinary = hn::Set(di, spec.has_infinity ? 0x7F7FFFFF : 0x7F800000);
  sweep(in, out, count, [&](auto x, size_t) HWY_ATTR {
    const auto bits = hn::BitCast(di, x);
    const auto a = hn::And(bits, magnitude);
    const auto special = hn::Gt(a, last_ordinary);
    const auto even = hn::And(hn::ShiftRightSame(a, shift), one);
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
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
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
HWY_EXPORT(FloatByAdding);
HWY_EXPORT(FloatByBits);
HWY_EXPORT(ClippedGradient);

void integer_kernel(const IntegerSpec& spec, const float* in, float* out, size_t count,
                    uint32_t key) {
  HWY_DYNAMIC_DISPATCH(Integer)(spec, in, out, count, key);
}

float integer_reference(const IntegerSpec& spec, float x, uint32_t key, uint32_t element) {
  if (std::isnan(x)) return x;
  float y = x * spec.scale;
  y = y > spec.high ? spec.high : y < spec.low ? spec.low : y;
  const float uniform =
      spec.rounding == Rounding::stochastic ? stochastic_uniform(key, element) : 0.0f;
  return round_to_whole(y, spec.rounding, uniform) * spec.inverse;
}

void float_kernel(const FloatSpec& spec, const float* in, float* out, size_t count) {
  const bool nearest = spec.rounding == Rounding::nearest_even;
  const int top = std::ilogb(spec.largest);
  if (nearest && spec.mantissa <= 21 && spec.emin >= -126 && top + 24 - spec.mantissa <= 127)
    return HWY_DYNAMIC_DISPATCH(FloatByAdding)(spec, in, out, count);
  if (nearest && spec.mantissa >= 1 && spec.mantissa <= 22 && spec.emin == -126 &&
      !spec.one_sided_zero)
    return HWY_DYNAMIC_DISPATCH(FloatByBits)(spec, in, out, count);
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
