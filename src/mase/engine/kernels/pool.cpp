// SPDX-License-Identifier: Apache-2.0
// A vector of lanes stays in registers while all taps of its window are looked at.
#include "mase/engine/kernels/pool.h"

#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/pool.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace pool {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

HWY_INLINE V Larger(V most, V value) {  // most, where it is larger or NaN
  return hn::IfThenElse(hn::Or(hn::Ge(most, value), hn::IsNaN(most)), most, value);
}

// The lanes that this tap takes, and that no later one may have.
template <class Mask>
HWY_INLINE Mask Takes(V value, V most, Mask both_nan, Mask& free) {
  const auto takes =
      hn::And(free, hn::Or(hn::Eq(value, most), hn::And(hn::IsNaN(value), both_nan)));
  free = hn::AndNot(takes, free);
  return takes;
}

void Max(const float* x, const int64_t* taps, int64_t count, float* y, int64_t n) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t first = 0;
  for (; first + lanes <= n; first += lanes) {
    V most = hn::Set(d, -INFINITY);
    for (int64_t t = 0; t < count; ++t) most = Larger(most, hn::LoadU(d, x + taps[t] + first));
    hn::StoreU(most, d, y + first);
  }
  if (first == n) return;
  const auto valid = hn::FirstN(d, static_cast<size_t>(n - first));
  V most = hn::Set(d, -INFINITY);
  for (int64_t t = 0; t < count; ++t)
    most = Larger(most, hn::MaskedLoad(valid, d, x + taps[t] + first));
  hn::BlendedStore(most, valid, d, y + first);
}

void MaxGradient(const float* x, const int64_t* taps, int64_t count, const float* y,
                 const float* up, float* dx, int64_t n) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t first = 0;
  for (; first + lanes <= n; first += lanes) {
    const V most = hn::LoadU(d, y + first), g = hn::LoadU(d, up + first);
    const auto nan = hn::IsNaN(most);
    auto free = hn::FirstN(d, static_cast<size_t>(lanes));
    for (int64_t t = 0; t < count; ++t) {
      float* to = dx + taps[t] + first;
      const auto takes = Takes(hn::LoadU(d, x + taps[t] + first), most, nan, free);
      hn::StoreU(hn::Add(hn::LoadU(d, to), hn::IfThenElseZero(takes, g)), d, to);
    }
  }
  if (first == n) return;
  const auto valid = hn::FirstN(d, static_cast<size_t>(n - first));
  const V most = hn::MaskedLoad(valid, d, y + first), g = hn::MaskedLoad(valid, d, up + first);
  const auto nan = hn::IsNaN(most);
  auto free = valid;
  for (int64_t t = 0; t < count; ++t) {
    float* to = dx + taps[t] + first;
    const auto takes = Takes(hn::MaskedLoad(valid, d, x + taps[t] + first), most, nan, free);
    const V sum = hn::Add(hn::MaskedLoad(valid, d, to), hn::IfThenElseZero(takes, g));
    hn::BlendedStore(sum, valid, d, to);
  }
}

}  // namespace pool

void PoolMax(const float* x, const int64_t* taps, int64_t count, float* y, int64_t n) {
  pool::Max(x, taps, count, y, n);
}

void PoolMaxGradient(const float* x, const int64_t* taps, int64_t count, const float* y,
                     const float* up, float* dx, int64_t n) {
  pool::MaxGradient(x, taps, count, y, up, dx, n);
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::kernels {
namespace {

HWY_EXPORT(PoolMax);
HWY_EXPORT(PoolMaxGradient);

}  // namespace

namespace reference {

void max_pool(const float* x, std::span<const int64_t> taps, float* y, int64_t n) {
  for (int64_t l = 0; l < n; ++l) {
    float most = -INFINITY;
    for (const int64_t tap : taps) {
      const float value = x[tap + l];
      if (!(most >= value || std::isnan(most))) most = value;
    }
    y[l] = most;
  }
}

void max_pool_gradient(const float* x, std::span<const int64_t> taps, const float* y,
                       const float* up, float* dx, int64_t n) {
  for (int64_t l = 0; l < n; ++l)
    for (const int64_t tap : taps) {
      const float value = x[tap + l];
      if (value != y[l] && !(std::isnan(value) && std::isnan(y[l]))) continue;
      dx[tap + l] += up[l];
      break;
    }
}

}  // namespace reference

void max_pool(const float* x, std::span<const int64_t> taps, float* y, int64_t n) {
  HWY_DYNAMIC_DISPATCH(PoolMax)(x, taps.data(), static_cast<int64_t>(taps.size()), y, n);
}

void max_pool_gradient(const float* x, std::span<const int64_t> taps, const float* y,
                       const float* up, float* dx, int64_t n) {
  HWY_DYNAMIC_DISPATCH(PoolMaxGradient)
  (x, taps.data(), static_cast<int64_t>(taps.size()), y, up, dx, n);
}

}  // namespace mase::kernels
#endif
