// SPDX-License-Identifier: Apache-2.0
// Functions of vectors, right for every input: infinities, NaN, zero and negative numbers. exp,
// log, sin and cos are Highway's; the others are fitted here (minimax over the interval named), to
// about 1e-7.
#if defined(MASE_ENGINE_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MASE_ENGINE_MATH_INL_H
#undef MASE_ENGINE_MATH_INL_H
#else
#define MASE_ENGINE_MATH_INL_H
#endif

#include <cmath>
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
// a third of the instructions. Error below 2 units in the last place; below -87, where results
// would not be normal numbers, it is 0. NaN stays NaN.
template <class D, class V>
HWY_INLINE V ExpNotPositive(D d, V given) {
  namespace hn = hwy::HWY_NAMESPACE;
  const hn::RebindToSigned<D> di;
  const V least = hn::Set(d, -87.0f), x = hn::Max(least, given);
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
  return hn::IfThenElse(hn::Ge(given, least), power, hn::IfThenElseZero(hn::IsNaN(given), given));
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

// c[0] + c[1] x + ...
template <class D, class V, size_t kCount>
HWY_INLINE V Polynomial(D d, V x, const float (&c)[kCount]) {
  namespace hn = hwy::HWY_NAMESPACE;
  V sum = hn::Set(d, c[kCount - 1]);
  for (size_t i = kCount - 1; i-- > 0;) sum = hn::MulAdd(sum, x, hn::Set(d, c[i]));
  return sum;
}

template <class D, class V>
HWY_INLINE V SafeTanh(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  // tanh(x) = x + x^3 P(x^2) up to 0.625, (1 - e) / (1 + e) with e = exp(-2 |x|) beyond.
  constexpr float c[] = {-0.33333334f, 0.13333306f,    -0.05395955f,
                         0.021770995f, -0.0083500072f, 0.0022989404f};
  const V size = hn::Abs(x), square = hn::Mul(x, x), one = hn::Set(d, 1.0f);
  const V small = hn::MulAdd(hn::Mul(x, square), Polynomial(d, square, c), x);
  const V e = ExpNotPositive(d, hn::Mul(size, hn::Set(d, -2.0f)));
  const V large = hn::CopySign(hn::Div(hn::Sub(one, e), hn::Add(one, e)), x);
  // NaN is not below 0.625, and e keeps it.
  return hn::IfThenElse(hn::Lt(size, hn::Set(d, 0.625f)), small, large);
}

template <class D, class V>
HWY_INLINE V SafeErf(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  // erf(x) = x P(x^2) up to 1, 1 - exp(-Q(|x|)) up to 4, 1 beyond.
  constexpr float p[] = {1.1283792f,    -0.37612638f,    0.11283783f,    -0.026865445f,
                         0.0052210749f, -0.00084847113f, 0.00011270544f, -9.6801359e-6f};
  constexpr float q[] = {-0.00018344678f, 1.1295569f,    0.63326257f,     0.10837251f,
                         -0.025178989f,   0.0041936194f, -0.00043910817f, 2.1496277e-5f};
  const V size = hn::Abs(x);
  const V small = hn::Mul(x, Polynomial(d, hn::Mul(x, x), p));
  const V inside = hn::Min(size, hn::Set(d, 4.0f));
  const V tail = ExpNotPositive(d, hn::Neg(Polynomial(d, inside, q)));
  const V large = hn::CopySign(hn::Sub(hn::Set(d, 1.0f), tail), x);
  const V result = hn::IfThenElse(hn::Lt(size, hn::Set(d, 1.0f)), small, large);
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

template <class D, class V>
HWY_INLINE V SafeSoftplus(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V tail = hn::Log1p(d, ExpNotPositive(d, hn::Neg(hn::Abs(x))));
  const V result = hn::Add(hn::Max(x, hn::Zero(d)), tail);
  return hn::IfThenElse(hn::IsNaN(x), x, result);
}

// Highway's sin and cos reduce angles up to 39000 only. Larger ones are rare: the C library, which
// reduces all exactly and makes NaN of the infinities, one by one. A lane's result does not depend
// on its neighbours.
template <class D, class V>
HWY_INLINE V LargeAngles(D d, V x, V result, double (*function)(double)) {
  namespace hn = hwy::HWY_NAMESPACE;
  const auto large = hn::Gt(hn::Abs(x), hn::Set(d, 39000.0f));
  if (HWY_LIKELY(hn::AllFalse(d, large))) return result;
  HWY_ALIGN float lanes[HWY_MAX_BYTES / sizeof(float)];
  hn::Store(x, d, lanes);
  for (size_t i = 0; i < hn::Lanes(d); ++i) lanes[i] = static_cast<float>(function(lanes[i]));
  return hn::IfThenElse(large, hn::Load(d, lanes), result);
}

template <class D, class V>
HWY_INLINE V SafeSin(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  const V usual = hn::IfThenElse(hn::Eq(x, hn::Zero(d)), x, hn::Sin(d, x));  // -0 stays -0
  return LargeAngles(d, x, usual, [](double angle) { return std::sin(angle); });
}

template <class D, class V>
HWY_INLINE V SafeCos(D d, V x) {
  namespace hn = hwy::HWY_NAMESPACE;
  return LargeAngles(d, x, hn::Cos(d, x), [](double angle) { return std::cos(angle); });
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
