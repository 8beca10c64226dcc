// SPDX-License-Identifier: Apache-2.0
// Highway's exp and log, made right for every input: infinities, NaN, zero and negative numbers.
#if defined(MASE_ENGINE_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MASE_ENGINE_MATH_INL_H
#undef MASE_ENGINE_MATH_INL_H
#else
#define MASE_ENGINE_MATH_INL_H
#endif

#include <limits>

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {

template <class D, class V>
HWY_INLINE V SafeExp(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V largest = hn::Set(d, 88.72284f), inf = hn::Set(d, std::numeric_limits<float>::infinity());
  const V inside = hn::Min(hn::Max(x, hn::Set(d, -150.0f)), largest);
  V result = hn::Exp(d, inside);
  result = hn::IfThenElse(hn::Gt(x, largest), inf, result);
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

// exp of a number that is not positive (a logit minus the largest one): no overflow to look after,
// a third of the instructions. Error below 2 units in the last place; below -87 the result stays at
// the smallest normal number, about 1e-38. NaN stays NaN.
template <class D, class V>
HWY_INLINE V ExpNotPositive(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> di;
  x = hn::Max(hn::Set(d, -87.0f), x);  // in this order NaN stays
  const V n = hn::Round(hn::Mul(x, hn::Set(d, 1.44269504f)));
  // ln 2 in two parts: n times the first is exact.
  V r = hn::NegMulAdd(n, hn::Set(d, 0.693359375f), x);
  r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f), r);
  V p = hn::Set(d, 1.0f / 720);
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 120));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 24));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f / 6));
  p = hn::MulAdd(p, r, hn::Set(d, 0.5f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  p = hn::MulAdd(p, r, hn::Set(d, 1.0f));
  // Times 2^n, by the exponent's bits; p is about 1 and n at least -126.
  const auto exponent = hn::ShiftLeft<23>(hn::ConvertTo(di, n));
  const V power = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  return hn::IfThenElse(hn::IsNaN(x), x, power);
}

template <class D, class V>
HWY_INLINE V SafeLog(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V zero = hn::Zero(d), inf = hn::Set(d, std::numeric_limits<float>::infinity());
  const auto usual = hn::And(hn::Gt(x, zero), hn::Lt(x, inf));
  const V result = hn::Log(d, hn::IfThenElse(usual, x, hn::Set(d, 1.0f)));
  // 0 gives -inf, inf gives inf, a negative number or NaN gives NaN.
  const V nan = hn::Set(d, std::numeric_limits<float>::quiet_NaN());
  const V odd =
      hn::IfThenElse(hn::Eq(x, zero), hn::Neg(inf), hn::IfThenElse(hn::Eq(x, inf), inf, nan));
  return hn::IfThenElse(usual, result, odd);
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
