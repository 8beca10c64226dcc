// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/kernels/learned.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/formats/kernels/learned.cpp"
#include <hwy/foreach_target.h>
// foreach_target first.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mase {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

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

HWY_EXPORT(Learned);
HWY_EXPORT(LearnedGradient);

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

}  // namespace mase
#endif
