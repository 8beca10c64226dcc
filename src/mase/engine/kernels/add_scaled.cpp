// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/kernels/add_scaled.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/add_scaled.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void AddScaled(float* out, const float* in, float factor, int64_t n) {
  const hn::ScalableTag<float> d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto f = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    hn::StoreU(hn::MulAdd(f, hn::LoadU(d, in + i), hn::LoadU(d, out + i)), d, out + i);
  const hn::CappedTag<float, 1> one;
  for (; i < n; ++i)
    hn::StoreU(hn::MulAdd(hn::Set(one, factor), hn::LoadU(one, in + i), hn::LoadU(one, out + i)),
               one, out + i);
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::kernels {

namespace reference {
void add_scaled(float* out, const float* in, float factor, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] += factor * in[i];
}
}  // namespace reference

HWY_EXPORT(AddScaled);
void add_scaled(float* out, const float* in, float factor, int64_t n) {
  HWY_DYNAMIC_DISPATCH(AddScaled)(out, in, factor, n);
}

}  // namespace mase::kernels
#endif
