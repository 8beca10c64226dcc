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
