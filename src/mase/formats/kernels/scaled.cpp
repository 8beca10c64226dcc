// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/kernels/scaled.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/formats/kernels/scaled.cpp"
#include <hwy/foreach_target.h>
// foreach_target first.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mase {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void Scaled(const ScaledSpec& spec, const float* in, float* out, size_t count) {
  const hn::ScalableTag<double> d;
  const hn::Rebind<float, decltype(d)> df;
  const size_t lanes = hn::Lanes(d);
  const auto inverse = hn::Set(d, 1 / spec.step), step = hn::Set(d, spec.step);
  const auto low = hn::Set(d, spec.low - spec.zero), high = hn::Set(d, spec.high - spec.zero);
  const auto one = [&](auto x) HWY_ATTR {
    auto k = hn::Round(hn::Mul(hn::PromoteTo(d, x), inverse));
    k = hn::Max(hn::Min(k, high), low);
    return hn::IfThenElse(hn::IsNaN(x), x, hn::DemoteTo(df, hn::Mul(k, step)));
  };
  size_t i = 0;
  for (; i + 2 * lanes <= count; i += 2 * lanes) {
    const auto a = one(hn::LoadU(df, in + i)), b = one(hn::LoadU(df, in + i + lanes));
    hn::StoreU(a, df, out + i);
    hn::StoreU(b, df, out + i + lanes);
  }
  for (; i < count; ++i) out[i] = scaled_reference(spec, in[i]);
}

void Range(const float* in, size_t count, float& lowest, float& largest) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  auto low = hn::Set(d, lowest), high = hn::Set(d, largest);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto x = hn::LoadU(d, in + i);
    const auto finite = hn::IfThenElseZero(hn::Lt(hn::Abs(x), hn::Inf(d)), x);
    low = hn::Min(low, finite);
    high = hn::Max(high, finite);
  }
  lowest = std::min(lowest, hn::GetLane(hn::MinOfLanes(d, low)));
  largest = std::max(largest, hn::GetLane(hn::MaxOfLanes(d, high)));
  for (; i < count; ++i)
    if (std::isfinite(in[i])) {
      lowest = std::min(lowest, in[i]);
      largest = std::max(largest, in[i]);
    }
}

}  // namespace HWY_NAMESPACE
}  // namespace mase
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase {

HWY_EXPORT(Scaled);
HWY_EXPORT(Range);

void scaled_kernel(const ScaledSpec& spec, const float* in, float* out, size_t count) {
  HWY_DYNAMIC_DISPATCH(Scaled)(spec, in, out, count);
}

double scaled_code(const ScaledSpec& spec, float x) {
  if (std::isnan(x)) return spec.zero;
  return std::clamp(std::nearbyint(static_cast<double>(x) * (1 / spec.step)), spec.low - spec.zero,
                    spec.high - spec.zero) +
         spec.zero;
}

float scaled_reference(const ScaledSpec& spec, float x) {
  if (std::isnan(x)) return x;
  return static_cast<float>((scaled_code(spec, x) - spec.zero) * spec.step);
}

void range_kernel(const float* in, size_t count, float& lowest, float& largest) {
  HWY_DYNAMIC_DISPATCH(Range)(in, count, lowest, largest);
}

}  // namespace mase
#endif
