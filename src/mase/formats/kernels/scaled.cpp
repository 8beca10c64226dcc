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

void Learned(const LearnedSpec& spec, const float* in, float* out, size_t count) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto inverse = hn::Set(d, 1 / spec.step), step = hn::Set(d, spec.step);
  const auto low = hn::Set(d, spec.low), high = hn::Set(d, spec.high);
  size_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto x = hn::LoadU(d, in + i);
    const auto k = hn::Max(hn::Min(hn::Round(hn::Mul(x, inverse)), high), low);
    hn::StoreU(hn::IfThenElse(hn::IsNaN(x), x, hn::Mul(k, step)), d, out + i);
  }
  learned_reference(spec, in + i, out + i, count - i);
}

double LearnedGradient(const LearnedSpec& spec, const float* in, const float* grad_out,
                       float* grad_in, size_t count) {
  const hn::ScalableTag<float> d;
  const size_t lanes = hn::Lanes(d);
  const auto inverse = hn::Set(d, 1 / spec.step);
  const auto low = hn::Set(d, spec.low), high = hn::Set(d, spec.high);
  const auto at_low = hn::Set(d, spec.at_low), at_high = hn::Set(d, spec.at_high);
  const auto share = hn::Set(d, spec.rounding_error ? 1.0f : 0.0f);
  constexpr size_t piece = 1024;  // summed in single precision
  double total = 0;
  size_t i = 0;
  while (i + lanes <= count) {
    auto sum = hn::Zero(d);
    const size_t end = std::min(count, i + piece);
    for (; i + lanes <= end; i += lanes) {
      const auto g = hn::LoadU(d, grad_out + i);
      const auto v = hn::Mul(hn::LoadU(d, in + i), inverse);
      const auto below = hn::Le(v, low), above = hn::Ge(v, high);
      const auto inside = hn::And(hn::Gt(v, low), hn::Lt(v, high));
      // Infinite and NaN values are outside: their difference is chosen away.
      const auto error = hn::IfThenElseZero(inside, hn::Mul(hn::Sub(hn::Round(v), v), share));
      const auto factor = hn::IfThenElse(above, at_high, hn::IfThenElse(below, at_low, error));
      sum = hn::MulAdd(g, factor, sum);
      hn::StoreU(hn::IfThenElseZero(inside, g), d, grad_in + i);
    }
    total += static_cast<double>(hn::GetLane(hn::SumOfLanes(d, sum)));
  }
  return total + learned_gradient_reference(spec, in + i, grad_out + i, grad_in + i, count - i);
}

}  // namespace HWY_NAMESPACE
}  // namespace mase
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase {

HWY_EXPORT(Scaled);
HWY_EXPORT(Range);
HWY_EXPORT(Learned);
HWY_EXPORT(LearnedGradient);

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

void learned_kernel(const LearnedSpec& spec, const float* in, float* out, size_t count) {
  HWY_DYNAMIC_DISPATCH(Learned)(spec, in, out, count);
}

void learned_reference(const LearnedSpec& spec, const float* in, float* out, size_t count) {
  const float inverse = 1 / spec.step;
  for (size_t i = 0; i < count; ++i)
    out[i] = std::isnan(in[i])
                 ? in[i]
                 : std::clamp(std::nearbyint(in[i] * inverse), spec.low, spec.high) * spec.step;
}

double learned_gradient_kernel(const LearnedSpec& spec, const float* in, const float* grad_out,
                               float* grad_in, size_t count) {
  return HWY_DYNAMIC_DISPATCH(LearnedGradient)(spec, in, grad_out, grad_in, count);
}

double learned_gradient_reference(const LearnedSpec& spec, const float* in, const float* grad_out,
                                  float* grad_in, size_t count) {
  const float inverse = 1 / spec.step;
  double sum = 0;
  for (size_t i = 0; i < count; ++i) {
    const float v = in[i] * inverse;
    const double g = grad_out[i];
    const bool inside = v > spec.low && v < spec.high;
    if (inside)
      sum += spec.rounding_error ? g * (std::nearbyint(v) - v) : 0;
    else if (v <= spec.low)
      sum += g * spec.at_low;
    else if (v >= spec.high)
      sum += g * spec.at_high;
    grad_in[i] = inside ? grad_out[i] : 0.0f;
  }
  return sum;
}

void range_kernel(const float* in, size_t count, float& lowest, float& largest) {
  HWY_DYNAMIC_DISPATCH(Range)(in, count, lowest, largest);
}

}  // namespace mase
#endif
