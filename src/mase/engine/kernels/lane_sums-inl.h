// SPDX-License-Identifier: Apache-2.0
// Sums over the lanes of four vectors at once.
#if defined(MASE_ENGINE_LANE_SUMS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef MASE_ENGINE_LANE_SUMS_INL_H
#undef MASE_ENGINE_LANE_SUMS_INL_H
#else
#define MASE_ENGINE_LANE_SUMS_INL_H
#endif

#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// body.operator()<rows>() for as many rows as `height` says, kMost at most.
template <int kMost, class Body>
HWY_INLINE void WithHeight(int64_t height, const Body& body) {
  if constexpr (kMost > 1) {
    if (height < kMost) return WithHeight<kMost - 1>(height, body);
  }
  body.template operator()<kMost>();
}

// The lane sums of four vectors, as four floats.
template <class D, class V>
HWY_INLINE void SumFour(D d, V a, V b, V c, V e, float* HWY_RESTRICT out) {
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  out[0] = hn::GetLane(hn::SumOfLanes(d, a));
  out[1] = hn::GetLane(hn::SumOfLanes(d, b));
  out[2] = hn::GetLane(hn::SumOfLanes(d, c));
  out[3] = hn::GetLane(hn::SumOfLanes(d, e));
#else
  if constexpr (HWY_MAX_BYTES == 64 && hn::MaxLanes(D()) == 16) {
    // One half onto the other first: what follows is then half as wide.
    const hn::Half<D> half;
    const auto folded = [=](V v) HWY_ATTR {
      return hn::Add(hn::LowerHalf(half, v), hn::UpperHalf(half, v));
    };
    SumFour(half, folded(a), folded(b), folded(c), folded(e), out);
  } else {
    const hn::Repartition<double, D> d64;
    const V ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
    const V ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
    const auto ab64 = hn::BitCast(d64, ab), ce64 = hn::BitCast(d64, ce);
    const V all = hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, ab64, ce64)),
                          hn::BitCast(d, hn::InterleaveUpper(d64, ab64, ce64)));
    if constexpr (hn::MaxLanes(D()) == 8) {
      const hn::Half<D> half;
      hn::StoreU(hn::Add(hn::LowerHalf(half, all), hn::UpperHalf(half, all)), half, out);
    } else {
      HWY_ALIGN float blocks[64];
      hn::Store(all, d, blocks);
      const hn::FixedTag<float, 4> d4;
      auto total = hn::Load(d4, blocks);
      for (size_t i = 4; i < hn::Lanes(d); i += 4) total = hn::Add(total, hn::Load(d4, blocks + i));
      hn::StoreU(total, d4, out);
    }
  }
#endif
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif
