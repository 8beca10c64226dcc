// SPDX-License-Identifier: Apache-2.0
// Rounding to fixed point, shared by the kernels with one spec and with many. Highway compiles it
// once per instruction set, hence the toggling guard.
#if defined(MASE_FORMATS_FIXED_INL) == defined(HWY_TARGET_TOGGLE)
#ifdef MASE_FORMATS_FIXED_INL
#undef MASE_FORMATS_FIXED_INL
#else
#define MASE_FORMATS_FIXED_INL
#endif

#include "mase/formats/kernels/sweep-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase {
namespace HWY_NAMESPACE {

// y modulo `wrap`, in [low, low + wrap). Exact: the distance to the nearest whole number of ranges
// has no more bits than y, and y itself is whole. Multiples of the range, as all numbers are that
// single precision holds beyond 2^24 ranges, give 0, and so does infinity.
HWY_INLINE V wrapped(V y, V low, V wrap) {
  const F d;
  const V t = hn::Div(y, wrap);
  V r = hn::Mul(hn::Sub(t, hn::Round(t)), wrap);
  r = hn::IfThenElseZero(hn::Lt(hn::Abs(y), hn::Inf(d)), r);
  r = hn::IfThenElse(hn::Lt(r, low), hn::Add(r, wrap), r);
  return hn::IfThenElse(hn::Ge(r, hn::Add(low, wrap)), hn::Sub(r, wrap), r);
}

// A clamped number has the sign of x, zero included, as PyTorch's does, or none where the range has
// none: instruction sets differ in what rounding makes of the sign of zero.
HWY_INLINE V with_sign(V y, V x, V low) {
  const F d;
  const V sign = hn::IfThenElseZero(hn::Lt(low, hn::Zero(d)), hn::SignBit(d));
  return hn::Or(hn::Abs(y), hn::And(x, sign));
}

// Not for stochastic rounding, which needs a draw.
template <Rounding rounding, bool wraps>
HWY_INLINE V to_fixed(V x, V scale, V inverse, V low, V high, V wrap) {
  V y = hn::Mul(x, scale);
  if constexpr (wraps) {
    y = hn::Add(wrapped(to_whole<rounding>(y), low, wrap), hn::Zero(F()));  // 0 has no sign
  } else {
    // Clamping first keeps every intermediate finite; whole limits make the order irrelevant.
    y = with_sign(to_whole<rounding>(hn::Max(hn::Min(y, high), low)), x, low);
  }
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Mul(y, inverse));
}

// Calls `body.template operator()<rounding>()` for every rounding but the stochastic one.
template <class Body>
HWY_INLINE void with_rounding(Rounding rounding, const Body& body) {
  switch (rounding) {
    case Rounding::stochastic:
    case Rounding::nearest_even:
      return body.template operator()<Rounding::nearest_even>();
    case Rounding::half_up:
      return body.template operator()<Rounding::half_up>();
    case Rounding::half_away:
      return body.template operator()<Rounding::half_away>();
    case Rounding::half_toward_zero:
      return body.template operator()<Rounding::half_toward_zero>();
    case Rounding::toward_zero:
      return body.template operator()<Rounding::toward_zero>();
    case Rounding::away_from_zero:
      return body.template operator()<Rounding::away_from_zero>();
    case Rounding::floor:
      return body.template operator()<Rounding::floor>();
    case Rounding::ceil:
      return body.template operator()<Rounding::ceil>();
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace mase
HWY_AFTER_NAMESPACE();

#endif  // per-target guard
