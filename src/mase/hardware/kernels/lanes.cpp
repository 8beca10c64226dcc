// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/kernels/lanes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/hardware/kernels/lanes.cpp"
#include <hwy/foreach_target.h>
// foreach_target first.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mase {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <class T, class Body>
HWY_INLINE void each(T* out, const Body& body) {
  const hn::ScalableTag<T> d;
  for (size_t i = 0; i < lane_block; i += hn::Lanes(d)) hn::Store(body(i), d, out + i);
}

template <class T>
HWY_INLINE void sums(const LaneStep& step, const T* a, const T* b, T* out, bool subtract) {
  const hn::ScalableTag<T> d;
  const auto k2 = hn::Set(d, static_cast<T>(step.k2));
  const int sa = static_cast<int>(step.k0), sb = static_cast<int>(step.k1);
  if (subtract)
    each(out, [&](size_t i) HWY_ATTR {
      return hn::Sub(hn::Sub(hn::ShiftLeftSame(hn::Load(d, a + i), sa),
                             hn::ShiftLeftSame(hn::Load(d, b + i), sb)),
                     k2);
    });
  else
    each(out, [&](size_t i) HWY_ATTR {
      return hn::Add(hn::Add(hn::ShiftLeftSame(hn::Load(d, a + i), sa),
                             hn::ShiftLeftSame(hn::Load(d, b + i), sb)),
                     k2);
    });
}

template <class T>
HWY_INLINE void run(const LaneStep& step, const T* a, const T* b, T* out) {
  const hn::ScalableTag<T> d;
  const auto k0 = hn::Set(d, static_cast<T>(step.k0)), k1 = hn::Set(d, static_cast<T>(step.k1));
  const int shift = static_cast<int>(step.k0);
  switch (step.op) {
    case LaneOp::add:
      return sums(step, a, b, out, false);
    case LaneOp::subtract:
      return sums(step, a, b, out, true);
    case LaneOp::multiply:
      // 64-bit lanes: not every instruction set has the product.
      if constexpr (sizeof(T) == 8) {
        for (size_t i = 0; i < lane_block; ++i) out[i] = a[i] * static_cast<T>(step.k0);
        return;
      } else {
        return each(out, [&](size_t i) HWY_ATTR { return hn::Mul(hn::Load(d, a + i), k0); });
      }
    case LaneOp::shift_left:
      return each(out,
                  [&](size_t i) HWY_ATTR { return hn::ShiftLeftSame(hn::Load(d, a + i), shift); });
    case LaneOp::shift_right:
      return each(out,
                  [&](size_t i) HWY_ATTR { return hn::ShiftRightSame(hn::Load(d, a + i), shift); });
    case LaneOp::clamp:
      return each(out,
                  [&](size_t i) HWY_ATTR { return hn::Min(hn::Max(hn::Load(d, a + i), k0), k1); });
    case LaneOp::wrap:
      return each(out, [&](size_t i) HWY_ATTR {
        return hn::Sub(hn::Xor(hn::And(hn::Load(d, a + i), k0), k1), k1);
      });
  }
}

void Run32(const LaneStep& step, const int32_t* a, const int32_t* b, int32_t* out) {
  run(step, a, b, out);
}
void Run64(const LaneStep& step, const int64_t* a, const int64_t* b, int64_t* out) {
  run(step, a, b, out);
}

}  // namespace HWY_NAMESPACE
}  // namespace mase
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase {

HWY_EXPORT(Run32);
HWY_EXPORT(Run64);

void lane_kernel(const LaneStep& step, const int32_t* a, const int32_t* b, int32_t* out) {
  HWY_DYNAMIC_DISPATCH(Run32)(step, a, b, out);
}
void lane_kernel(const LaneStep& step, const int64_t* a, const int64_t* b, int64_t* out) {
  HWY_DYNAMIC_DISPATCH(Run64)(step, a, b, out);
}

}  // namespace mase
#endif
