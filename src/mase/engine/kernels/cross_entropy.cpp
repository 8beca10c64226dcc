// SPDX-License-Identifier: Apache-2.0
// Softmax, loss, arg-max hits and gradient in one sweep over the class rows, samples along lanes.
#include <cmath>

#include "mase/engine/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/cross_entropy.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "mase/engine/kernels/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Labels are padded with zeros up to whole vectors; a sample with a negative one does not count. A
// sample with a NaN or an infinite largest
// logit has no class and is no hit.
reference::CrossEntropyResult CrossEntropy(const float* HWY_RESTRICT logits, int64_t classes,
                                           int64_t stride, int64_t n,
                                           const int32_t* HWY_RESTRICT labels,
                                           const float* class_weights, float scale,
                                           float* HWY_RESTRICT g) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  using V = hn::Vec<decltype(d)>;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  reference::CrossEntropyResult result;
  const V zero = hn::Zero(d), share = hn::Set(d, scale);
  V losses = zero;
  auto hits = hn::Zero(di);
  int64_t pending = 0;
  for (int64_t b = 0; b < n; b += lanes) {
    const auto label = hn::LoadU(di, labels + b);
    V top = hn::Load(d, logits + b);
    auto best = hn::Zero(di);
    auto known = hn::Eq(top, top);
    V chosen = hn::IfThenElseZero(hn::RebindMask(d, hn::Eq(label, hn::Zero(di))), top);
    const auto counts = hn::RebindMask(d, hn::Gt(label, hn::Set(di, -1)));
    V weight = hn::IfThenElseZero(counts, hn::Set(d, class_weights ? class_weights[0] : 1.0f));
    for (int64_t c = 1; c < classes; ++c) {
      const V x = hn::Load(d, logits + c * stride + b);
      const auto number = hn::Set(di, static_cast<int32_t>(c));
      const auto larger = hn::Gt(x, top);
      known = hn::And(known, hn::Eq(x, x));
      top = hn::IfThenElse(larger, x, top);
      best = hn::IfThenElse(hn::RebindMask(di, larger), number, best);
      const auto own = hn::RebindMask(d, hn::Eq(label, number));
      chosen = hn::IfThenElse(own, x, chosen);
      if (class_weights) weight = hn::IfThenElse(own, hn::Set(d, class_weights[c]), weight);
    }
    V total = zero;
    for (int64_t c = 0; c < classes; ++c) {
      const V e = ExpNotPositive(d, hn::Sub(hn::Load(d, logits + c * stride + b), top));
      total = hn::Add(total, e);
      if (g) hn::Store(e, d, g + c * stride + b);
    }
    V loss = hn::Mul(weight, hn::Add(SafeLog(d, total), hn::Sub(top, chosen)));
    known = hn::And(known, hn::IsFinite(top));
    auto hit =
        hn::IfThenElseZero(hn::And(hn::RebindMask(di, known), hn::Eq(best, label)), hn::Set(di, 1));
    if (b + lanes > n) {
      const auto rest = static_cast<size_t>(n - b);
      loss = hn::IfThenElseZero(hn::FirstN(d, rest), loss);
      hit = hn::IfThenElseZero(hn::FirstN(di, rest), hit);
    }
    losses = hn::Add(losses, loss);
    hits = hn::Add(hits, hit);
    if (++pending == 64 || b + lanes >= n) {  // long sums in double precision
      result.loss += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, losses)));
      losses = zero;
      pending = 0;
    }
    if (!g) continue;
    const V factor = hn::Mul(weight, share), inverse = hn::Div(factor, total);
    for (int64_t c = 0; c < classes; ++c) {
      const auto own = hn::RebindMask(d, hn::Eq(label, hn::Set(di, static_cast<int32_t>(c))));
      float* to = g + c * stride + b;
      hn::Store(hn::Sub(hn::Mul(hn::Load(d, to), inverse), hn::IfThenElseZero(own, factor)), d, to);
    }
  }
  result.correct = hn::GetLane(hn::SumOfLanes(di, hits));
  return result;
}

// The hits alone, by the same comparisons.
int64_t Hits(const float* HWY_RESTRICT logits, int64_t classes, int64_t stride, int64_t n,
             const int32_t* HWY_RESTRICT labels) {
  const hn::ScalableTag<float> d;
  const hn::RebindToSigned<decltype(d)> di;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto hits = hn::Zero(di);
  for (int64_t b = 0; b < n; b += lanes) {
    auto top = hn::Load(d, logits + b);
    auto best = hn::Zero(di);
    auto known = hn::Eq(top, top);
    for (int64_t c = 1; c < classes; ++c) {
      const auto x = hn::Load(d, logits + c * stride + b);
      const auto larger = hn::Gt(x, top);
      known = hn::And(known, hn::Eq(x, x));
      top = hn::IfThenElse(larger, x, top);
      best = hn::IfThenElse(hn::RebindMask(di, larger), hn::Set(di, static_cast<int32_t>(c)), best);
    }
    known = hn::And(known, hn::IsFinite(top));
    auto hit = hn::IfThenElseZero(
        hn::And(hn::RebindMask(di, known), hn::Eq(best, hn::LoadU(di, labels + b))),
        hn::Set(di, 1));
    if (b + lanes > n) hit = hn::IfThenElseZero(hn::FirstN(di, static_cast<size_t>(n - b)), hit);
    hits = hn::Add(hits, hit);
  }
  return hn::GetLane(hn::SumOfLanes(di, hits));
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::kernels {

HWY_EXPORT(CrossEntropy);
HWY_EXPORT(Hits);

CrossEntropyResult cross_entropy(const float* logits, int64_t classes, int64_t stride, int64_t n,
                                 const int32_t* labels, const float* class_weights, float scale,
                                 float* g) {
  return HWY_DYNAMIC_DISPATCH(CrossEntropy)(logits, classes, stride, n, labels, class_weights,
                                            scale, g);
}

int64_t hits(const float* logits, int64_t classes, int64_t stride, int64_t n,
             const int32_t* labels) {
  return HWY_DYNAMIC_DISPATCH(Hits)(logits, classes, stride, n, labels);
}

}  // namespace mase::kernels
#endif
