// SPDX-License-Identifier: Apache-2.0
// A group of outputs for up to 14 lanes (6 with 16 registers) stays in registers; one value of x is
// broadcast to a lane's outputs at a time.
#include "mase/engine/kernels/output_lanes.h"

#include <utility>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/output_lanes.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace output_lanes {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
constexpr int kVectors = static_cast<int>(output_group) / kLanes;
constexpr int kMost = kLanes >= 16 ? 14 : kLanes == 8 ? 6 : kLanes == 4 ? 3 : 1;

template <int kCount>
HWY_NOINLINE void Tile(const ShiftedShape& s, const float* HWY_RESTRICT w, const float* bias,
                       const float* HWY_RESTRICT x, float* HWY_RESTRICT y, const Finish& finish) {
  const D d;
  V sum[kCount][kVectors];
  for (int v = 0; v < kVectors; ++v) {
    const V start = bias ? hn::LoadU(d, bias + v * kLanes) : hn::Zero(d);
    for (int j = 0; j < kCount; ++j) sum[j][v] = start;
  }
  for (int64_t k = 0; k < s.in; ++k, w += output_group) {
    const float* row = x + s.offsets[k];
    V weight[kVectors];
    for (int v = 0; v < kVectors; ++v) weight[v] = hn::LoadU(d, w + v * kLanes);
    for (int j = 0; j < kCount; ++j) {
      const V value = hn::Set(d, row[j]);
      for (int v = 0; v < kVectors; ++v) sum[j][v] = hn::MulAdd(weight[v], value, sum[j][v]);
    }
  }
  const V low = hn::Set(d, finish.low), high = hn::Set(d, finish.high);
  for (int j = 0; j < kCount; ++j)
    for (int v = 0; v < kVectors; ++v)  // in this order NaN stays
      hn::StoreU(hn::Min(high, hn::Max(low, sum[j][v])), d, y + j * s.out + v * kLanes);
}

using Run = void (*)(const ShiftedShape&, const float*, const float*, const float*, float*,
                     const Finish&);

template <int... kCounts>
HWY_INLINE Run TileOf(int64_t count, std::integer_sequence<int, kCounts...>) {
  static constexpr Run tiles[] = {Tile<kCounts + 1>...};
  return tiles[count - 1];
}

}  // namespace output_lanes

// One segment for one group of outputs.
void SumOutputs(const ShiftedShape& s, const float* w, const float* bias, const float* x, float* y,
                const Finish& finish) {
  using namespace output_lanes;
  const int64_t tiles = (s.n + kMost - 1) / kMost, count = (s.n + tiles - 1) / tiles;
  const Run run = TileOf(count, std::make_integer_sequence<int, kMost>());
  for (int64_t i = 0; i < s.n; i += count) {
    const int64_t first = HWY_MIN(i, s.n - count);  // the last may begin earlier
    run(s, w, bias, x + first, y + first * s.out, finish);
  }
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "mase/engine/kernels/parallel.h"

namespace mase::kernels {
namespace {

HWY_EXPORT(SumOutputs);

// Below this many multiply-adds a second thread costs more than it brings.
constexpr int64_t parallel_work = int64_t{1} << 20;

}  // namespace

void pack_outputs(const float* w, int64_t out, int64_t in, float* packed) {
  for (int64_t o = 0; o < out; ++o)
    for (int64_t i = 0; i < in; ++i)
      packed[(o / output_group * in + i) * output_group + o % output_group] = w[o * in + i];
}

namespace reference {

void output_lanes(const ShiftedShape& s, const float* packed, const float* bias, const float* x,
                  float* y, const Finish& finish) {
  for (int64_t segment = 0; segment < s.segments; ++segment)
    for (int64_t lane = 0; lane < s.n; ++lane)
      for (int64_t o = 0; o < s.out; ++o) {
        double sum = bias ? bias[o] : 0.0f;
        for (int64_t i = 0; i < s.in; ++i)
          sum += static_cast<double>(
                     packed[(o / output_group * s.in + i) * output_group + o % output_group]) *
                 x[segment * s.x_step + s.offsets[i] + lane];
        const auto value = static_cast<float>(sum);
        y[(segment * s.n + lane) * s.out + o] = value < finish.low    ? finish.low
                                                : value > finish.high ? finish.high
                                                                      : value;
      }
}

}  // namespace reference

void output_lanes(const ShiftedShape& s, const float* packed, const float* bias, const float* x,
                  float* y, const Finish& finish) {
  const auto run = HWY_DYNAMIC_DISPATCH(SumOutputs);
  const bool parallel = s.threads > 1 && s.out * s.in * s.n * s.segments >= parallel_work;
  const int64_t groups = s.out / output_group;
  for_each_piece(groups * s.segments, parallel ? s.threads : 1, [&](int64_t i) {
    const int64_t o = i / s.segments * output_group, segment = i % s.segments;
    run(s, packed + o * s.in, bias ? bias + o : nullptr, x + segment * s.x_step,
        y + segment * s.n * s.out + o, finish);
  });
}

}  // namespace mase::kernels
#endif
