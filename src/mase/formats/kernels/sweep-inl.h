// SPDX-License-Identifier: Apache-2.0
// What the kernels of this folder share. Highway compiles it once per instruction set, hence the
// toggling guard.
#ifndef MASE_FORMATS_STREAMING
#define MASE_FORMATS_STREAMING

#include <cstddef>
#include <cstdint>

#include "mase/formats/rounding.h"

namespace mase {
// Results of this many values leave the caches anyway: their stores need not read the line first.
inline constexpr size_t streaming_count = size_t{1} << 21;

// How far ahead arrays of that size are fetched by kernels whose arithmetic the processor cannot
// overlap with memory by itself.
inline constexpr size_t fetch_ahead = 1024;

inline bool can_stream(const void* in, const void* out, size_t count) {
  return count >= streaming_count && in != out && reinterpret_cast<uintptr_t>(out) % 64 == 0;
}
}  // namespace mase
#endif

#if defined(MASE_FORMATS_SWEEP_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASE_FORMATS_SWEEP_INL
#undef MASE_FORMATS_SWEEP_INL
#else
#define MASE_FORMATS_SWEEP_INL
#endif

#include <hwy/cache_control.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mase {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F = hn::ScalableTag<float>;
using I = hn::RebindToSigned<F>;
using U = hn::RebindToUnsigned<F>;
using V = hn::Vec<F>;
using VI = hn::Vec<I>;
using VU = hn::Vec<U>;

// Applies `body(vector, index)` to a whole array of 4-byte numbers; the tail goes through a small
// buffer, so that every value takes the same path. `out` may be `in`.
template <class In, class Out, class Body>
HWY_INLINE void sweep(const In* in, Out* out, size_t count, const Body& body) {
  static_assert(sizeof(In) == 4 && sizeof(Out) == 4);
  const hn::ScalableTag<In> di;
  const hn::ScalableTag<Out> d;
  const size_t lanes = hn::Lanes(d);
  size_t i = 0;
  if (can_stream(in, out, count)) {
    for (; i + 4 * lanes <= count; i += 4 * lanes) {
      const auto a = body(hn::LoadU(di, in + i), i);
      const auto b = body(hn::LoadU(di, in + i + lanes), i + lanes);
      const auto c = body(hn::LoadU(di, in + i + 2 * lanes), i + 2 * lanes);
      const auto e = body(hn::LoadU(di, in + i + 3 * lanes), i + 3 * lanes);
      hn::Stream(a, d, out + i);
      hn::Stream(b, d, out + i + lanes);
      hn::Stream(c, d, out + i + 2 * lanes);
      hn::Stream(e, d, out + i + 3 * lanes);
    }
    hwy::FlushStream();
  } else {
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
      const auto a = body(hn::LoadU(di, in + i), i);
      const auto b = body(hn::LoadU(di, in + i + lanes), i + lanes);
      hn::StoreU(a, d, out + i);
      hn::StoreU(b, d, out + i + lanes);
    }
  }
  for (; i + lanes <= count; i += lanes) hn::StoreU(body(hn::LoadU(di, in + i), i), d, out + i);
  if (i < count) {
    HWY_ALIGN In given[HWY_MAX_BYTES / sizeof(In)] = {};
    HWY_ALIGN Out result[HWY_MAX_BYTES / sizeof(Out)];
    for (size_t k = 0; i + k < count; ++k) given[k] = in[i + k];
    hn::Store(body(hn::Load(di, given), i), d, result);
    for (size_t k = 0; i + k < count; ++k) out[i + k] = result[k];
  }
}

// Not for stochastic rounding, which needs a draw.
template <Rounding rounding>
HWY_INLINE V to_whole(V x) {
  const F d;
  if constexpr (rounding == Rounding::half_away) {
    const V whole = hn::Trunc(x);
    const auto up = hn::Ge(hn::Abs(hn::Sub(x, whole)), hn::Set(d, 0.5f));
    return hn::Add(whole, hn::IfThenElseZero(up, hn::CopySign(hn::Set(d, 1.0f), x)));
  } else if constexpr (rounding == Rounding::half_up) {
    // The difference is exact, or lies between 0.5 and 1 and stays there when it is rounded.
    const V whole = hn::Floor(x);
    const auto up = hn::Ge(hn::Sub(x, whole), hn::Set(d, 0.5f));
    return hn::Add(whole, hn::IfThenElseZero(up, hn::Set(d, 1.0f)));
  } else if constexpr (rounding == Rounding::half_toward_zero) {
    const V whole = hn::Trunc(x);
    const auto up = hn::Gt(hn::Abs(hn::Sub(x, whole)), hn::Set(d, 0.5f));
    return hn::Add(whole, hn::IfThenElseZero(up, hn::CopySign(hn::Set(d, 1.0f), x)));
  } else if constexpr (rounding == Rounding::away_from_zero) {
    const V whole = hn::Trunc(x);
    const auto up = hn::Ne(x, whole);
    return hn::Add(whole, hn::IfThenElseZero(up, hn::CopySign(hn::Set(d, 1.0f), x)));
  } else if constexpr (rounding == Rounding::toward_zero) {
    return hn::Trunc(x);
  } else if constexpr (rounding == Rounding::floor) {
    return hn::Floor(x);
  } else if constexpr (rounding == Rounding::ceil) {
    return hn::Ceil(x);
  } else {
    static_assert(rounding == Rounding::nearest_even);
    return hn::Round(x);
  }
}

// Rounds magnitudes to the numbers of a small float, beyond the largest one to that.
struct FloatRounder {
  V largest, smallest, magic, steps, inverse_steps;

  FloatRounder(int mantissa, float smallest_normal, float largest_number) {
    const F d;
    largest = hn::Set(d, largest_number);
    smallest = hn::Set(d, smallest_normal);
    // Adding 1.5 * 2^(E + 23 - m) leaves exactly m fraction bits of a number with exponent E,
    // rounded to nearest even by the adder itself. Needs E + 24 - m <= 127 for the largest E.
    magic = hn::Set(d, std::ldexp(1.5f, 23 - mantissa));
    steps = hn::Set(d, std::ldexp(1.0f, mantissa));
    inverse_steps = hn::Set(d, std::ldexp(1.0f, -mantissa));
  }

  template <Rounding rounding>
  HWY_INLINE V round(V magnitude) const {
    const F d;
    const V a = hn::Min(magnitude, largest);
    const V p = hn::Max(hn::And(a, hn::BitCast(d, hn::Set(I(), 0x7F800000))), smallest);
    if constexpr (rounding == Rounding::nearest_even) {
      const V shift = hn::Mul(p, magic);
      return hn::Sub(hn::Add(a, shift), shift);
    } else {
      const V inverse_p = hn::BitCast(d, hn::Sub(hn::Set(I(), 254 << 23), hn::BitCast(I(), p)));
      const V whole = to_whole<rounding>(hn::Mul(hn::Mul(a, inverse_p), steps));
      return hn::Mul(whole, hn::Mul(p, inverse_steps));
    }
  }

  // The negative number -smallest is zero's code: what rounds to it goes to 0 or -2 * smallest.
  HWY_INLINE V without_least_negative(V rounded, V x) const {
    const V lost = hn::Neg(smallest);
    const V other = hn::IfThenElseZero(hn::Lt(x, lost), hn::Add(lost, lost));
    return hn::IfThenElse(hn::Eq(rounded, lost), other, rounded);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace mase
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
