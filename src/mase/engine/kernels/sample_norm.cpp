// SPDX-License-Identifier: Apache-2.0
// Softmax and layer norm, samples along the lanes: one vector of samples goes through all its rows
// while its statistics are in registers.
#include "mase/engine/kernels/sample_norm.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/sample_norm.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "mase/engine/kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE int64_t LaneCount() { return static_cast<int64_t>(hn::Lanes(D())); }

HWY_INLINE void StoreOrAdd(V value, bool accumulate, float* to) {
  const D d;
  hn::Store(accumulate ? hn::Add(hn::Load(d, to), value) : value, d, to);
}

// The sum of term(row) over the rows of a sample, eight sums side by side: they need not wait for
// each other, and their roundings are those of an eighth of the rows.
template <class Term>
HWY_INLINE V LaneTotal(int64_t rows, const Term& term) {
  const D d;
  V s0 = hn::Zero(d), s1 = s0, s2 = s0, s3 = s0, s4 = s0, s5 = s0, s6 = s0, s7 = s0;
  int64_t i = 0;
  for (; i + 8 <= rows; i += 8) {
    s0 = term(i, s0);
    s1 = term(i + 1, s1);
    s2 = term(i + 2, s2);
    s3 = term(i + 3, s3);
    s4 = term(i + 4, s4);
    s5 = term(i + 5, s5);
    s6 = term(i + 6, s6);
    s7 = term(i + 7, s7);
  }
  for (; i < rows; ++i) s0 = term(i, s0);
  return hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)),
                 hn::Add(hn::Add(s4, s5), hn::Add(s6, s7)));
}

void Softmax(const SampleRange& r, const float* HWY_RESTRICT x, float* HWY_RESTRICT y,
             bool logarithm) {
  const D d;
  const V lowest = hn::Set(d, -INFINITY);
  for (int64_t b = 0; b < r.n; b += LaneCount()) {
    V top = lowest;
    for (int64_t k = 0; k < r.length; ++k) {
      const V value = hn::Load(d, x + k * r.step + b);
      top = hn::IfThenElse(hn::Or(hn::Gt(value, top), hn::IsNaN(value)), value, top);
    }
    top = hn::IfThenElse(hn::Eq(top, lowest), hn::Zero(d), top);
    const V total = LaneTotal(r.length, [&](int64_t k, V sum) HWY_ATTR {
      const V e = ExpNotPositive(d, hn::Sub(hn::Load(d, x + k * r.step + b), top));
      if (!logarithm) hn::Store(e, d, y + k * r.step + b);
      return hn::Add(sum, e);
    });
    const V share = hn::Div(hn::Set(d, 1.0f), total);
    const V log_total = SafeLog(d, total);
    for (int64_t k = 0; k < r.length; ++k) {
      float* to = y + k * r.step + b;
      // In this order: a large logit must not swallow the logarithm.
      hn::Store(logarithm ? hn::Sub(hn::Sub(hn::Load(d, x + k * r.step + b), top), log_total)
                          : hn::Mul(hn::Load(d, to), share),
                d, to);
    }
  }
}

void SoftmaxGradient(const SampleRange& r, const float* y, const float* g, float* dx,
                     bool logarithm, bool accumulate) {
  const D d;
  for (int64_t b = 0; b < r.n; b += LaneCount()) {
    V total = hn::Zero(d);
    for (int64_t k = 0; k < r.length; ++k) {
      const V up = hn::Load(d, g + k * r.step + b);
      total =
          logarithm ? hn::Add(total, up) : hn::MulAdd(up, hn::Load(d, y + k * r.step + b), total);
    }
    for (int64_t k = 0; k < r.length; ++k) {
      const int64_t at = k * r.step + b;
      const V up = hn::Load(d, g + at), out = hn::Load(d, y + at);
      // Logarithms of probabilities are not positive but for rounding.
      const V result =
          logarithm ? hn::NegMulAdd(SafeExp(d, out), total, up) : hn::Mul(hn::Sub(up, total), out);
      StoreOrAdd(result, accumulate, dx + at);
    }
  }
}

// Mean and 1 / deviation of each lane.
HWY_INLINE void LaneMoments(const SampleRange& r, const float* x, float eps, V& mean, V& inverse) {
  const D d;
  const V share = hn::Set(d, 1.0f / static_cast<float>(r.length));
  mean = hn::Mul(
      LaneTotal(r.length, [&](int64_t i, V sum)
                              HWY_ATTR { return hn::Add(sum, hn::Load(d, x + i * r.step)); }),
      share);
  const V squares = LaneTotal(r.length, [&](int64_t i, V sum) HWY_ATTR {
    const V centered = hn::Sub(hn::Load(d, x + i * r.step), mean);
    return hn::MulAdd(centered, centered, sum);
  });
  inverse = hn::Div(hn::Set(d, 1.0f), hn::Sqrt(hn::MulAdd(squares, share, hn::Set(d, eps))));
}

void LayerNorm(const SampleRange& r, const float* HWY_RESTRICT x, const float* weight,
               const float* bias, double eps, float* HWY_RESTRICT y) {
  const D d;
  for (int64_t b = 0; b < r.n; b += LaneCount()) {
    V mean, inverse;
    LaneMoments(r, x + b, static_cast<float>(eps), mean, inverse);
    for (int64_t i = 0; i < r.length; ++i) {
      const V xhat = hn::Mul(hn::Sub(hn::Load(d, x + i * r.step + b), mean), inverse);
      const V scale = hn::Set(d, weight ? weight[i] : 1.0f);
      hn::Store(hn::MulAdd(xhat, scale, hn::Set(d, bias ? bias[i] : 0.0f)), d, y + i * r.step + b);
    }
  }
}

void LayerNormGradient(const SampleRange& r, const float* x, const float* g, const float* weight,
                       double eps, float* dx, bool accumulate, const LayerNormSums& sums) {
  const D d;
  const V share = hn::Set(d, 1.0f / static_cast<float>(r.length));
  for (int64_t b = 0; b < r.n; b += LaneCount()) {
    V mean, inverse, total = hn::Zero(d), product = hn::Zero(d);
    LaneMoments(r, x + b, static_cast<float>(eps), mean, inverse);
    // The padding may hold anything, NaN included.
    const auto valid = hn::FirstN(d, static_cast<size_t>(r.n - b));
    for (int64_t i = 0; i < r.length; ++i) {
      const int64_t at = i * r.step + b;
      const V xhat = hn::Mul(hn::Sub(hn::Load(d, x + at), mean), inverse);
      const V up = hn::Load(d, g + at), each = hn::Mul(up, xhat);
      const auto sum = [&](V v) HWY_ATTR {
        return static_cast<double>(hn::GetLane(hn::SumOfLanes(d, hn::IfThenElseZero(valid, v))));
      };
      sums.weight[i] += sum(each);
      sums.bias[i] += sum(up);
      const V scale = hn::Set(d, weight ? weight[i] : 1.0f);
      total = hn::MulAdd(up, scale, total);
      product = hn::MulAdd(each, scale, product);
    }
    if (!dx) continue;
    total = hn::Mul(total, share);
    product = hn::Mul(product, share);
    for (int64_t i = 0; i < r.length; ++i) {
      const int64_t at = i * r.step + b;
      const V xhat = hn::Mul(hn::Sub(hn::Load(d, x + at), mean), inverse);
      const V scale = hn::Set(d, weight ? weight[i] : 1.0f);
      const V level = hn::MulAdd(xhat, product, total);
      StoreOrAdd(hn::Mul(inverse, hn::MulSub(hn::Load(d, g + at), scale, level)), accumulate,
                 dx + at);
    }
  }
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::kernels {
namespace {

HWY_EXPORT(Softmax);
HWY_EXPORT(SoftmaxGradient);
HWY_EXPORT(LayerNorm);
HWY_EXPORT(LayerNormGradient);

// Rows of a batch are whole cache lines apart; those of other tensors are not padded.
bool has_lanes(const SampleRange& range) { return range.step % 16 == 0; }

}  // namespace

void softmax(const SampleRange& range, const float* x, float* y, bool logarithm) {
  if (!has_lanes(range)) return reference::softmax(range, x, y, logarithm);
  HWY_DYNAMIC_DISPATCH(Softmax)(range, x, y, logarithm);
}

void softmax_gradient(const SampleRange& range, const float* y, const float* g, float* dx,
                      bool logarithm, bool accumulate) {
  if (!has_lanes(range)) return reference::softmax_gradient(range, y, g, dx, logarithm, accumulate);
  HWY_DYNAMIC_DISPATCH(SoftmaxGradient)(range, y, g, dx, logarithm, accumulate);
}

void layer_norm(const SampleRange& range, const float* x, const float* weight, const float* bias,
                double eps, float* y) {
  if (!has_lanes(range)) return reference::layer_norm(range, x, weight, bias, eps, y);
  HWY_DYNAMIC_DISPATCH(LayerNorm)(range, x, weight, bias, eps, y);
}

void layer_norm_gradient(const SampleRange& range, const float* x, const float* g,
                         const float* weight, double eps, float* dx, bool accumulate,
                         const LayerNormSums& sums) {
  if (!has_lanes(range))
    return reference::layer_norm_gradient(range, x, g, weight, eps, dx, accumulate, sums);
  HWY_DYNAMIC_DISPATCH(LayerNormGradient)(range, x, g, weight, eps, dx, accumulate, sums);
}

}  // namespace mase::kernels
#endif
