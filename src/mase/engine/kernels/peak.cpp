// SPDX-License-Identifier: Apache-2.0
#include "mase/engine/kernels/peak.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/peak.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

double PeakMultiplyAdds(int64_t rounds, float* keep) {
  const hn::ScalableTag<float> d;
  using V = hn::Vec<decltype(d)>;
  const V a = hn::Set(d, 1.0f - keep[0]), b = hn::Set(d, keep[0]);
  // Sums that begin alike would be one sum to the compiler.
  const auto start = [&](float k) { return hn::Set(d, k * keep[0]); };
  V s0 = start(1), s1 = start(2), s2 = start(3), s3 = start(4), s4 = start(5), s5 = start(6),
    s6 = start(7), s7 = start(8), s8 = start(9), s9 = start(10);
  for (int64_t i = 0; i < rounds; ++i) {
    s0 = hn::MulAdd(s0, a, b);
    s1 = hn::MulAdd(s1, a, b);
    s2 = hn::MulAdd(s2, a, b);
    s3 = hn::MulAdd(s3, a, b);
    s4 = hn::MulAdd(s4, a, b);
    s5 = hn::MulAdd(s5, a, b);
    s6 = hn::MulAdd(s6, a, b);
    s7 = hn::MulAdd(s7, a, b);
    s8 = hn::MulAdd(s8, a, b);
    s9 = hn::MulAdd(s9, a, b);
  }
  const V low = hn::Add(hn::Add(hn::Add(s0, s1), hn::Add(s2, s3)), s4);
  const V high = hn::Add(hn::Add(hn::Add(s5, s6), hn::Add(s7, s8)), s9);
  keep[1] = hn::GetLane(hn::SumOfLanes(d, hn::Add(low, high)));
  return 2.0 * 10 * static_cast<double>(rounds) * static_cast<double>(hn::Lanes(d));
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::kernels {

HWY_EXPORT(PeakMultiplyAdds);
double peak_multiply_adds(int64_t rounds, float* keep) {
  return HWY_DYNAMIC_DISPATCH(PeakMultiplyAdds)(rounds, keep);
}

}  // namespace mase::kernels
#endif
