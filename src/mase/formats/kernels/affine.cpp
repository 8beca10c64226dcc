// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/kernels/affine.h"

#include <algorithm>
#include <cmath>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/formats/kernels/affine.cpp"
#include <hwy/foreach_target.h>
// foreach_target first.
#include "mase/formats/kernels/sweep-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase {
namespace HWY_NAMESPACE {

void RoundAffine(const AffineSpec& spec, const float* in, float* out, size_t count) {
  const F d;
  const V scale = hn::Set(d, spec.scale), zero = hn::Set(d, spec.zero);
  const V low = hn::Set(d, spec.low), high = hn::Set(d, spec.high);
  const bool first = spec.zero_first;
  sweep(in, out, count, [&](V x, size_t) HWY_ATTR {
    V k = hn::Div(x, scale);
    k = first ? hn::Round(hn::Max(hn::Min(hn::Add(k, zero), high), low))
              : hn::Max(hn::Min(hn::Add(hn::Round(k), zero), high), low);
    // Adding 0 leaves one zero, that without a sign.
    const V value = hn::Add(hn::Mul(hn::Sub(k, zero), scale), hn::Zero(d));
    return hn::IfThenElse(hn::IsNaN(x), x, value);
  });
}

}  // namespace HWY_NAMESPACE
}  // namespace mase
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase {

HWY_EXPORT(RoundAffine);

float affine_reference(const AffineSpec& spec, float x) {
  if (std::isnan(x)) return x;
  const float quotient = x / spec.scale;
  const float k =
      spec.zero_first
          ? round_to_whole(std::clamp(quotient + spec.zero, spec.low, spec.high), spec.rounding)
          : std::clamp(round_to_whole(quotient, spec.rounding) + spec.zero, spec.low, spec.high);
  return (k - spec.zero) * spec.scale + 0.0f;
}

void affine_kernel(const AffineSpec& spec, const float* in, float* out, size_t count) {
  if (spec.rounding == Rounding::nearest_even) {
    HWY_DYNAMIC_DISPATCH(RoundAffine)(spec, in, out, count);
    return;
  }
  for (size_t i = 0; i < count; ++i) out[i] = affine_reference(spec, in[i]);
}

}  // namespace mase
#endif
