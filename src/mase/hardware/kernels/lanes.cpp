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

// Most sums shift one operand or none and have no constant: what is not there costs no instruction.
template <bool subtract, class T>
HWY_INLINE void sums(const LaneStep& step, const T* a, const T* b, T* out) {
  const hn::ScalableTag<T> d;
  const auto joined = [](auto x, auto y) HWY_ATTR {
    if constexpr (subtract)
      return hn::Sub(x, y);
    else
      return hn::Add(x, y);
  };
  const int sa = static_cast<int>(step.k0), sb = static_cast<int>(step.k1);
  if (step.k2 == 0 && sa == 0 && sb == 0)
    return each(out,
                [&](size_t i) HWY_ATTR { return joined(hn::Load(d, a + i), hn::Load(d, b + i)); });
  if (step.k2 == 0 && sa == 0)
    return each(out, [&](size_t i) HWY_ATTR {
      return joined(hn::Load(d, a + i), hn::ShiftLeftSame(hn::Load(d, b + i), sb));
    });
  if (step.k2 == 0 && sb == 0)
    return each(out, [&](size_t i) HWY_ATTR {
      return joined(hn::ShiftLeftSame(hn::Load(d, a + i), sa), hn::Load(d, b + i));
    });
  const auto k2 = hn::Set(d, static_cast<T>(step.k2));
  each(out, [&](size_t i) HWY_ATTR {
    return joined(joined(hn::ShiftLeftSame(hn::Load(d, a + i), sa),
                         hn::ShiftLeftSame(hn::Load(d, b + i), sb)),
                  k2);
  });
}

// A lane's sum is complete before the first of its operands may be written over.
template <class T>
HWY_INLINE void linear_sum(const LaneCall& call, T* memory) {
  const hn::CappedTag<T, lane_block / 4> d;
  const auto block = [&](int number) {
    return memory + static_cast<size_t>(number) * static_cast<size_t>(lane_block);
  };
  T* const out = block(call.to);
  const std::span<const int64_t> factors = call.step.factors;
  if constexpr (sizeof(T) == 8) {
    // 64-bit lanes: not every instruction set has the product.
    T sums[lane_block];
    for (T& sum : sums) sum = static_cast<T>(call.step.k0);
    for (size_t k = 0; k < factors.size(); ++k) {
      const T* const in = block(call.operands[k]);
      for (size_t i = 0; i < lane_block; ++i) sums[i] += static_cast<T>(factors[k]) * in[i];
    }
    for (size_t i = 0; i < lane_block; ++i) out[i] = sums[i];
  } else {
    const size_t lanes = hn::Lanes(d);
    const auto constant = hn::Set(d, static_cast<T>(call.step.k0));
    for (size_t first = 0; first < lane_block; first += 4 * lanes) {
      auto s0 = constant, s1 = constant, s2 = constant, s3 = constant;
      for (size_t k = 0; k < factors.size(); ++k) {
        const T* const in = block(call.operands[k]) + first;
        const auto factor = hn::Set(d, static_cast<T>(factors[k]));
        s0 = hn::Add(s0, hn::Mul(factor, hn::Load(d, in)));
        s1 = hn::Add(s1, hn::Mul(factor, hn::Load(d, in + lanes)));
        s2 = hn::Add(s2, hn::Mul(factor, hn::Load(d, in + 2 * lanes)));
        s3 = hn::Add(s3, hn::Mul(factor, hn::Load(d, in + 3 * lanes)));
      }
      hn::Store(s0, d, out + first);
      hn::Store(s1, d, out + first + lanes);
      hn::Store(s2, d, out + first + 2 * lanes);
      hn::Store(s3, d, out + first + 3 * lanes);
    }
  }
}

template <class T>
HWY_INLINE void run(const LaneStep& step, const T* a, const T* b, T* out) {
  const hn::ScalableTag<T> d;
  const auto k0 = hn::Set(d, static_cast<T>(step.k0)), k1 = hn::Set(d, static_cast<T>(step.k1));
  const int shift = static_cast<int>(step.k0);
  // Numbers of so many bits have none left below, but their sign.
  const int most = static_cast<int>(8 * sizeof(T)) - 1;
  const auto floor_shift = [&](auto x) HWY_ATTR {
    return hn::ShiftRightSame(x, shift < most ? shift : most);
  };
  switch (step.op) {
    case LaneOp::add:
      return sums<false>(step, a, b, out);
    case LaneOp::subtract:
      return sums<true>(step, a, b, out);
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
      return each(out, [&](size_t i) HWY_ATTR { return floor_shift(hn::Load(d, a + i)); });
    case LaneOp::round_even: {
      const T below_half = static_cast<T>((uint64_t{1} << (step.k0 - 1)) - 1);
      const auto half = hn::Set(d, static_cast<T>(below_half + 1)), one = hn::Set(d, T{1}),
                 dropped = hn::Set(d, static_cast<T>(below_half * 2 + 1));
      return each(out, [&](size_t i) HWY_ATTR {
        const auto value = hn::Load(d, a + i), below = floor_shift(value),
                   odd = hn::And(below, one);
        // One up where more than half was dropped, or half of an odd number: no sum to overflow.
        const auto up = hn::Gt(hn::And(value, dropped), hn::Sub(half, odd));
        return hn::Sub(below, hn::VecFromMask(d, up));
      });
    }
    case LaneOp::clamp:
      return each(out,
                  [&](size_t i) HWY_ATTR { return hn::Min(hn::Max(hn::Load(d, a + i), k0), k1); });
    case LaneOp::wrap:
      return each(out, [&](size_t i) HWY_ATTR {
        return hn::Sub(hn::Xor(hn::And(hn::Load(d, a + i), k0), k1), k1);
      });
    case LaneOp::linear_sum:
      return;  // of many operands: run_all
  }
}

template <class T>
HWY_INLINE void run_all(std::span<const LaneCall> calls, T* memory) {
  const auto block = [&](int number) {
    return memory + static_cast<size_t>(number) * static_cast<size_t>(lane_block);
  };
  for (const LaneCall& call : calls)
    if (call.step.op == LaneOp::linear_sum)
      linear_sum(call, memory);
    else
      run(call.step, block(call.a), block(call.b), block(call.to));
}

void Run32(std::span<const LaneCall> calls, int32_t* memory) { run_all(calls, memory); }
void Run64(std::span<const LaneCall> calls, int64_t* memory) { run_all(calls, memory); }

}  // namespace HWY_NAMESPACE
}  // namespace mase
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase {

HWY_EXPORT(Run32);
HWY_EXPORT(Run64);

void lane_kernels(std::span<const LaneCall> calls, int32_t* memory) {
  HWY_DYNAMIC_DISPATCH(Run32)(calls, memory);
}
void lane_kernels(std::span<const LaneCall> calls, int64_t* memory) {
  HWY_DYNAMIC_DISPATCH(Run64)(calls, memory);
}

}  // namespace mase
#endif
