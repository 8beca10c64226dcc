// SPDX-License-Identifier: Apache-2.0
// Gathering, normalising and a small linear layer in one sweep. Two vectors of samples at a time
// are transposed into a tile of a few kilobytes on the stack and multiplied from there: the
// shuffles of one tile fill the pipes that the multiply-adds of the tile before leave free, and the
// transposed batch is never written. Each result is summed in the order of `linear`.
#include <algorithm>

#include "mase/engine/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/gather_linear.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "mase/engine/kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET == HWY_SCALAR
using D = hn::CappedTag<float, 1>;
using V = hn::Vec<D>;
#endif
constexpr int64_t kMostFeatures = 64;
constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(D()));
constexpr int64_t kTile = 2 * kLanes;  // samples

struct Task {
  Samples samples;
  const Normalizer* normalizer;
  LinearShape shape;
  const float *w, *bias;
  float low;  // max(low, result): 0 is a relu, -inf none
  float* y;
};

// max(low, x * scale + shift), in an order that keeps NaN.
HWY_INLINE V Normalized(const Normalizer& by, int64_t feature, V x) {
  const D d;
  return hn::Max(hn::Set(d, by.low),
                 hn::MulAdd(x, hn::Set(d, by.scale[feature]), hn::Set(d, by.shift[feature])));
}

// Features [begin, features) of `count` samples, one by one; the others of the tile become 0.
HWY_NOINLINE void FillSlowly(const float* const* at, int64_t count, int64_t begin, int64_t features,
                             const Normalizer* by, float* HWY_RESTRICT tile) {
  const D d;
  for (int64_t f = begin; f < features; ++f) {
    float* row = tile + f * kTile;
    for (int64_t i = 0; i < kTile; ++i) row[i] = i < count ? at[i][f] : 0.0f;
    for (int64_t i = 0; by && i < kTile; i += kLanes)
      hn::Store(Normalized(*by, f, hn::Load(d, row + i)), d, row + i);
  }
}

// Consecutive samples.
struct Consecutive {
  const float* first;
  int64_t features;
  HWY_INLINE const float* operator[](int64_t i) const { return first + i * features; }
};

// All features but the last one, two or three of a whole tile; how many is returned.
template <bool kNormalize, class Rows>
HWY_INLINE int64_t Fill([[maybe_unused]] const Rows& at, [[maybe_unused]] int64_t features,
                        [[maybe_unused]] const Normalizer* normalizer,
                        [[maybe_unused]] float* HWY_RESTRICT tile) {
  int64_t f = 0;
#if HWY_TARGET != HWY_SCALAR
  const D d;
  // Own copies: nothing that is stored can change them.
  const Normalizer by = kNormalize ? *normalizer : Normalizer{};
  const V low = hn::Set(d, by.low);
  for (; f + 4 <= features; f += 4) {
    V v[2][4];
    for (int64_t k = 0; k < 2; ++k) {
      for (int64_t i = 0; i < 4; ++i) v[k][i] = LoadBlocks(at, k * kLanes + i, f);
      TransposeBlocks(d, v[k][0], v[k][1], v[k][2], v[k][3]);
    }
    for (int64_t i = 0; i < 4; ++i) {
      float* row = tile + (f + i) * kTile;
      if (kNormalize) {
        const V scale = hn::Set(d, by.scale[f + i]), shift = hn::Set(d, by.shift[f + i]);
        for (auto& half : v) half[i] = hn::Max(low, hn::MulAdd(half[i], scale, shift));
      }
      hn::Store(v[0][i], d, row);
      hn::Store(v[1][i], d, row + kLanes);
    }
  }
#endif
  return f;
}

// kRows outputs of a tile.
template <int kRows>
HWY_INLINE void Multiply(const LinearShape& s, const float* w, const float* bias, float least,
                         const float* HWY_RESTRICT tile, float* HWY_RESTRICT y) {
  const D d;
  const float* weights[kRows];
  for (int r = 0; r < kRows; ++r) weights[r] = w + r * s.out_step;
  V sum[kRows][2];
  for (int r = 0; r < kRows; ++r) sum[r][0] = sum[r][1] = bias ? hn::Set(d, bias[r]) : hn::Zero(d);
  for (int64_t k = 0, at = 0; k < s.in; ++k, at += s.in_step) {
    V a = hn::Load(d, tile + k * kTile), b = hn::Load(d, tile + k * kTile + kLanes);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
    asm("" : "+x"(a.raw));  // else GCC reads them from memory in each multiply-add
    asm("" : "+x"(b.raw));
#endif
    for (int r = 0; r < kRows; ++r) {
      const V weight = hn::Set(d, weights[r][at]);
      sum[r][0] = hn::MulAdd(weight, a, sum[r][0]);
      sum[r][1] = hn::MulAdd(weight, b, sum[r][1]);
    }
  }
  const V low = hn::Set(d, least);
  for (int r = 0; r < kRows; ++r) {
    hn::Store(hn::Max(low, sum[r][0]), d, y + r * s.stride);
    hn::Store(hn::Max(low, sum[r][1]), d, y + r * s.stride + kLanes);
  }
}

// kFirst + kSecond outputs for samples [begin, end). With kFeatures > 0 the samples are consecutive
// ones of so many features and the weights lie row by row: with known distances the addresses need
// no instructions, which is a sixth of all.
template <bool kNormalize, int64_t kFeatures, int kFirst, int kSecond>
void Tiles(const Task& task, int64_t begin, int64_t end) {
  HWY_ALIGN float tile[kMostFeatures * kTile];
  LinearShape s = task.shape;
  if (kFeatures > 0) s.in = s.out_step = kFeatures, s.in_step = 1;
  const Samples samples = task.samples;
  const float *w = task.w, *bias = task.bias, *more = bias ? bias + kFirst : nullptr;
  float* y = task.y;
  const auto row_at = [=](int64_t b) {
    return samples.source +
           (samples.rows ? static_cast<int64_t>(samples.rows[b]) : samples.first + b) * s.in;
  };
  for (int64_t b = begin; b < end; b += kTile) {
    const int64_t count = std::min(kTile, end - b);
    if (kFeatures > 0 && count == kTile) {
      const float* first = samples.source + (samples.first + b) * s.in;
      Fill<kNormalize>(Consecutive{first, s.in}, s.in, task.normalizer, tile);
    } else {
      constexpr int64_t ahead = 32;
      const float* at[kTile];
      for (int64_t i = 0; i < count; ++i) at[i] = row_at(b + i);
      for (int64_t i = b + ahead; samples.rows && i < std::min(b + ahead + kTile, end); ++i)
        for (int64_t f = 0; f < s.in; f += 16) hwy::Prefetch(row_at(i) + f);
      const int64_t done = count == kTile ? Fill<kNormalize>(at, s.in, task.normalizer, tile) : 0;
      if (done < s.in) FillSlowly(at, count, done, s.in, task.normalizer, tile);
    }
    Multiply<kFirst>(s, w, bias, task.low, tile, y + b);
    if constexpr (kSecond > 0)
      Multiply<kSecond>(s, w + kFirst * s.out_step, more, task.low, tile,
                        y + kFirst * s.stride + b);
  }
}

template <bool kNormalize, int64_t kFeatures>
void AnyOutputs(const Task& task, int64_t begin, int64_t end) {
  switch (task.shape.out) {
    case 1:
      return Tiles<kNormalize, kFeatures, 1, 0>(task, begin, end);
    case 2:
      return Tiles<kNormalize, kFeatures, 2, 0>(task, begin, end);
    case 3:
      return Tiles<kNormalize, kFeatures, 3, 0>(task, begin, end);
    case 4:
      return Tiles<kNormalize, kFeatures, 4, 0>(task, begin, end);
    case 5:
      return Tiles<kNormalize, kFeatures, 5, 0>(task, begin, end);
    case 6:
      return Tiles<kNormalize, kFeatures, 6, 0>(task, begin, end);
    case 7:
      return Tiles<kNormalize, kFeatures, 4, 3>(task, begin, end);
    default:
      return Tiles<kNormalize, kFeatures, 4, 4>(task, begin, end);
  }
}

void GatherLinear(const Samples& samples, const Normalizer* normalizer, const LinearShape& shape,
                  const float* w, const float* bias, float low, float* y, int64_t begin,
                  int64_t end) {
  const Task task{samples, normalizer, shape, w, bias, low, y};
  constexpr int64_t jets = 16;  // features of the data sets all of these networks are for
  const bool known =
      shape.in == jets && shape.out_step == jets && shape.in_step == 1 && !samples.rows;
  const auto outputs = normalizer ? known ? AnyOutputs<true, jets> : AnyOutputs<true, 0>
                       : known ? AnyOutputs<false, jets>
                                  : AnyOutputs<false, 0>;
  outputs(task, begin, end);
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <limits>

#include "mase/engine/kernels/parallel.h"

namespace mase::kernels {
namespace {

HWY_EXPORT(GatherLinear);

}  // namespace

void gather_linear(const Samples& samples, const Normalizer* normalizer, const LinearShape& s,
                   const float* w, const float* bias, bool relu, float* y) {
  const auto kernel = HWY_DYNAMIC_DISPATCH(GatherLinear);
  const float low = relu ? 0.0f : -std::numeric_limits<float>::infinity();
  // Below this many multiply-adds a second thread costs more than it brings.
  const bool parallel = s.threads > 1 && s.out * s.in * s.n >= (int64_t{1} << 20);
  const int64_t size = parallel ? 256 : s.n;
  for_each_piece((s.n + size - 1) / size, parallel ? s.threads : 1, [&](int64_t i) {
    kernel(samples, normalizer, s, w, bias, low, y, i * size, std::min(s.n, (i + 1) * size));
  });
}

}  // namespace mase::kernels
#endif
