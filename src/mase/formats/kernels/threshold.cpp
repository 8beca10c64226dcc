// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/kernels/threshold.h"

#include <cmath>
#include <limits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/formats/kernels/threshold.cpp"
#include <hwy/foreach_target.h>
// foreach_target first.
#include "mase/formats/kernels/sweep-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase {
namespace HWY_NAMESPACE {

void Threshold(const ThresholdSpec& spec, const float* in, float* out, size_t count) {
  const F d;
  const V above = hn::Set(d, spec.above), below = hn::Set(d, spec.below);
  const V low = hn::Set(d, spec.low), middle = hn::Set(d, spec.middle),
          high = hn::Set(d, spec.high);
  sweep(in, out, count, [&](V x, size_t) HWY_ATTR {
    const V lower = hn::IfThenElse(hn::Lt(x, below), low, middle);
    const V value = hn::IfThenElse(hn::Ge(x, above), high, lower);
    return hn::IfThenElse(hn::IsNaN(x), x, value);
  });
}

void Residual(std::span<const float> gammas, const float* in, float* out, size_t count) {
  const F d;
  sweep(in, out, count, [&](V x, size_t) HWY_ATTR {
    V rest = x, sum = hn::Zero(d);
    for (const float gamma : gammas) {
      const V g = hn::Set(d, gamma);
      const V step = hn::IfThenElse(hn::Ge(rest, hn::Zero(d)), g, hn::Neg(g));
      sum = hn::Add(sum, step);
      rest = hn::Sub(rest, step);
    }
    return hn::IfThenElse(hn::IsNaN(x), x, sum);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace mase
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase {

HWY_EXPORT(Threshold);
HWY_EXPORT(Residual);

void threshold_kernel(const ThresholdSpec& spec, const float* in, float* out, size_t count) {
  HWY_DYNAMIC_DISPATCH(Threshold)(spec, in, out, count);
}

float threshold_reference(const ThresholdSpec& spec, float x) {
  if (std::isnan(x)) return x;
  return x >= spec.above ? spec.high : x < spec.below ? spec.low : spec.middle;
}

void residual_kernel(std::span<const float> gammas, const float* in, float* out, size_t count) {
  HWY_DYNAMIC_DISPATCH(Residual)(gammas, in, out, count);
}

float residual_reference(std::span<const float> gammas, float x) {
  if (std::isnan(x)) return x;
  float rest = x, sum = 0;
  for (const float gamma : gammas) {
    const float step = rest >= 0 ? gamma : -gamma;
    sum += step;
    rest -= step;
  }
  return sum;
}

void add_magnitudes(const float* in, size_t count, float threshold, MagnitudeSum& result) {
  constexpr size_t lanes = 8;  // sums that do not wait for each other
  double sums[lanes] = {};
  size_t kept = 0;
  for (size_t i = 0; i < count; i += lanes)
    for (size_t k = 0; k < lanes && i + k < count; ++k) {
      const float a = std::fabs(in[i + k]);
      const bool keep = a > threshold && a < std::numeric_limits<float>::infinity();
      sums[k] += keep ? static_cast<double>(a) : 0.0;
      kept += keep;
    }
  for (const double sum : sums) result.sum += sum;
  result.count += kept;
}

}  // namespace mase
#endif
