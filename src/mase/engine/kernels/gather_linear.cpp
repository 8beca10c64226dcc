// SPDX-License-Identifier: Apache-2.0
// Gathering, normalising and small linear layers in one sweep. Two vectors of samples at a time are
// transposed into a tile of a few kilobytes on the stack and multiplied from there: the shuffles of
// one tile fill the pipes that the multiply-adds of the tile before leave free, and the transposed
// batch is never written. With 32 registers the samples of jets go through all layers without a
// tile. Each result is summed in the order of `linear`.
#include <algorithm>
#include <limits>

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
constexpr int64_t kMostFeatures = 64, kMostOutputs = 8;
constexpr int64_t kJets = 16;  // features of the data sets all of these networks are for
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
  constexpr void (*const kTiles[])(const Task&, int64_t, int64_t) = {
      Tiles<kNormalize, kFeatures, 1, 0>, Tiles<kNormalize, kFeatures, 2, 0>,
      Tiles<kNormalize, kFeatures, 3, 0>, Tiles<kNormalize, kFeatures, 4, 0>,
      Tiles<kNormalize, kFeatures, 5, 0>, Tiles<kNormalize, kFeatures, 6, 0>,
      Tiles<kNormalize, kFeatures, 4, 3>, Tiles<kNormalize, kFeatures, 4, 4>};
  kTiles[task.shape.out - 1](task, begin, end);
}

struct Layer {
  int64_t in, out, out_step, in_step;
  const float *w, *bias;
  float low;  // max(low, result): 0 is a relu, -inf none

  HWY_INLINE bool RowByRow() const { return out_step == in && in_step == 1; }
};

#if HWY_ARCH_X86 && HWY_MAX_BYTES >= 64
using Wide = hn::FixedTag<float, 16>;
using WideV = hn::Vec<Wide>;
constexpr int kHidden = 8;  // outputs of every layer but the last that stay in registers

// kOut outputs of kHidden inputs.
template <int kOut>
HWY_INLINE void NextInRegisters(const Layer& layer, const WideV (&x)[kHidden], WideV (&y)[kOut]) {
  const Wide d;
  const float *w = layer.w, *bias = layer.bias;
  WideV sum[kOut];
  for (int r = 0; r < kOut; ++r) sum[r] = bias ? hn::Set(d, bias[r]) : hn::Zero(d);
  HWY_UNROLL(8)
  for (int k = 0; k < kHidden; ++k)
    for (int r = 0; r < kOut; ++r)
      sum[r] = hn::MulAdd(hn::Set(d, w[r * kHidden + k]), x[k], sum[r]);
  const WideV low = hn::Set(d, layer.low);
  for (int r = 0; r < kOut; ++r) y[r] = hn::Max(low, sum[r]);
}

// Whole vectors of consecutive samples of kJets features through `count` layers whose weights lie
// row by row; kDeep: several of them, kHidden wide but for the last. A vector of samples at a time:
// nothing between samples and results is ever in memory, and the shuffles of the next features
// begin before the multiply-adds of these have ended. One weight is read for each multiply-add,
// which is as many as can be: two vectors of samples would share it, but wait for their shuffles.
template <bool kNormalize, int kOut, bool kDeep>
void InRegisters(const float* HWY_RESTRICT samples, const Normalizer* normalizer,
                 const Layer* layers, int64_t count, float* HWY_RESTRICT y, int64_t stride,
                 int64_t n) {
  constexpr int first = kDeep ? kHidden : kOut;
  const Wide d;
  const float *w = layers[0].w, *bias = layers[0].bias,
              *scales = kNormalize ? normalizer->scale : nullptr,
              *shifts = kNormalize ? normalizer->shift : nullptr;
  const WideV low = hn::Set(d, layers[0].low),
              least = hn::Set(d, kNormalize ? normalizer->low : 0.0f);
  for (int64_t b = 0; b < n; b += 16) {
    const Consecutive at{samples + b * kJets, kJets};
    WideV sum[first];
    for (int r = 0; r < first; ++r) sum[r] = bias ? hn::Set(d, bias[r]) : hn::Zero(d);
    HWY_UNROLL(4)
    for (int64_t f = 0; f < kJets; f += 4) {
      WideV v[4];
      for (int64_t i = 0; i < 4; ++i) v[i] = LoadFourBlocks(at, i, f);
      TransposeBlocks(d, v[0], v[1], v[2], v[3]);
      HWY_UNROLL(4)
      for (int64_t i = 0; i < 4; ++i) {
        if (kNormalize)
          v[i] = hn::Max(least,
                         hn::MulAdd(v[i], hn::Set(d, scales[f + i]), hn::Set(d, shifts[f + i])));
        for (int r = 0; r < first; ++r)
          sum[r] = hn::MulAdd(hn::Set(d, w[r * kJets + f + i]), v[i], sum[r]);
      }
    }
    for (WideV& v : sum) v = hn::Max(low, v);
    if constexpr (kDeep) {
      for (int64_t i = 1; i + 1 < count; ++i) NextInRegisters<kHidden>(layers[i], sum, sum);
      WideV last[kOut];
      NextInRegisters<kOut>(layers[count - 1], sum, last);
      for (int r = 0; r < kOut; ++r) hn::Store(last[r], d, y + r * stride + b);
    } else {
      for (int r = 0; r < kOut; ++r) hn::Store(sum[r], d, y + r * stride + b);
    }
  }
}

template <bool kNormalize, bool kDeep>
auto InRegistersFor(int64_t out) {
  constexpr decltype(&InRegisters<kNormalize, 1, kDeep>) functions[] = {
      InRegisters<kNormalize, 1, kDeep>, InRegisters<kNormalize, 2, kDeep>,
      InRegisters<kNormalize, 3, kDeep>, InRegisters<kNormalize, 4, kDeep>,
      InRegisters<kNormalize, 5, kDeep>, InRegisters<kNormalize, 6, kDeep>,
      InRegisters<kNormalize, 7, kDeep>, InRegisters<kNormalize, 8, kDeep>};
  return functions[out - 1];
}
#endif

bool LayersInRegisters([[maybe_unused]] const int64_t* sizes, [[maybe_unused]] int64_t layers) {
#if HWY_ARCH_X86 && HWY_MAX_BYTES >= 64
  if (sizes[0] != kJets || sizes[layers] < 1 || sizes[layers] > kMostOutputs) return false;
  for (int64_t i = 1; i < layers; ++i)
    if (sizes[i] != kHidden) return false;
  return true;
#else
  return false;
#endif
}

// Whole vectors of samples [begin, end), where all layers suit; how many samples that was.
int64_t GatherInRegisters([[maybe_unused]] const Samples& samples,
                          [[maybe_unused]] const Normalizer* normalizer,
                          [[maybe_unused]] const Layer* layers, [[maybe_unused]] int64_t count,
                          [[maybe_unused]] float* y, [[maybe_unused]] int64_t stride,
                          [[maybe_unused]] int64_t begin, [[maybe_unused]] int64_t end) {
#if HWY_ARCH_X86 && HWY_MAX_BYTES >= 64
  for (int64_t i = 0; i < count; ++i)
    if (!layers[i].RowByRow() || layers[i].in != (i == 0 ? kJets : kHidden)) return 0;
  const int64_t n = (end - begin) / 16 * 16, out = layers[count - 1].out;
  const auto run =
      normalizer  ? count > 1 ? InRegistersFor<true, true>(out) : InRegistersFor<true, false>(out)
       : count > 1 ? InRegistersFor<false, true>(out)
                  : InRegistersFor<false, false>(out);
  run(samples.source + (samples.first + begin) * kJets, normalizer, layers, count, y + begin,
      stride, n);
  return n;
#else
  return 0;
#endif
}

using TilesFunction = void (*)(const Task&, int64_t, int64_t);

template <int kOut>
HWY_NOINLINE void MultiplyTile(const Layer& layer, const float* HWY_RESTRICT tile,
                               float* HWY_RESTRICT y, int64_t stride) {
  const LinearShape s{layer.out, layer.in, layer.out_step, layer.in_step, stride, kTile};
  constexpr int first = kOut <= 6 ? kOut : 4;
  Multiply<first>(s, layer.w, layer.bias, layer.low, tile, y);
  if constexpr (kOut > first)
    Multiply<kOut - first>(s, layer.w + first * s.out_step,
                           layer.bias ? layer.bias + first : nullptr, layer.low, tile,
                           y + first * stride);
}

// Samples [begin, end) through several layers, a tile at a time: of the first, `outputs`.
void Chain(const Task& task, TilesFunction outputs, const Layer* layers, int64_t count,
           int64_t begin, int64_t end) {
  constexpr decltype(&MultiplyTile<1>) functions[] = {
      MultiplyTile<1>, MultiplyTile<2>, MultiplyTile<3>, MultiplyTile<4>,
      MultiplyTile<5>, MultiplyTile<6>, MultiplyTile<7>, MultiplyTile<8>};
  HWY_ALIGN float between[2][kMostOutputs * kTile];
  Task part = task;
  part.shape.stride = kTile;
  part.y = between[0];
  for (int64_t b = begin; b < end; b += kTile) {
    part.samples.first = task.samples.first + b;
    if (task.samples.rows) part.samples.rows = task.samples.rows + b;
    outputs(part, 0, std::min(kTile, end - b));
    for (int64_t i = 1; i < count; ++i) {
      const bool last = i + 1 == count;
      functions[layers[i].out - 1](layers[i], between[(i + 1) % 2],
                                   last ? task.y + b : between[i % 2],
                                   last ? task.shape.stride : kTile);
    }
  }
}

void GatherLinear(const Samples& samples, const Normalizer* normalizer, const LinearShape& shape,
                  const float* w, const float* bias, bool relu, const NextLayer* next,
                  int64_t count, float* y, int64_t begin, int64_t end) {
  const auto low = [](bool limited) {
    return limited ? 0.0f : -std::numeric_limits<float>::infinity();
  };
  Layer layers[kMostLayers];
  layers[0] = {shape.in, shape.out, shape.out_step, shape.in_step, w, bias, low(relu)};
  for (int64_t i = 0; i < count; ++i)
    layers[i + 1] = {layers[i].out, next[i].out,  next[i].out_step, next[i].in_step,
                     next[i].w,     next[i].bias, low(next[i].relu)};
  ++count;
  const bool known = shape.in == kJets && layers[0].RowByRow() && !samples.rows;
  if (known)
    begin += GatherInRegisters(samples, normalizer, layers, count, y, shape.stride, begin, end);
  if (begin == end) return;
  const Task task{samples, normalizer, shape, w, bias, layers[0].low, y};
  const TilesFunction outputs = normalizer ? known ? AnyOutputs<true, kJets> : AnyOutputs<true, 0>
                                : known ? AnyOutputs<false, kJets>
                                           : AnyOutputs<false, 0>;
  if (count == 1)
    outputs(task, begin, end);
  else
    Chain(task, outputs, layers, count, begin, end);
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "mase/base/error.h"
#include "mase/engine/kernels/parallel.h"

namespace mase::kernels {
namespace {

HWY_EXPORT(GatherLinear);
HWY_EXPORT(LayersInRegisters);

}  // namespace

bool layers_in_registers(std::span<const int64_t> sizes) {
  return sizes.size() - 1 <= kMostLayers &&
         HWY_DYNAMIC_DISPATCH(LayersInRegisters)(sizes.data(),
                                                 static_cast<int64_t>(sizes.size()) - 1);
}

void gather_linear(const Samples& samples, const Normalizer* normalizer, const LinearShape& s,
                   const float* w, const float* bias, bool relu, float* y,
                   std::span<const NextLayer> next) {
  MASE_CHECK(next.size() < kMostLayers, "{} layers behind a gather", next.size() + 1);
  const auto kernel = HWY_DYNAMIC_DISPATCH(GatherLinear);
  // Below this many multiply-adds a second thread costs more than it brings.
  const bool parallel = s.threads > 1 && s.out * s.in * s.n >= (int64_t{1} << 20);
  const int64_t size = parallel ? 256 : s.n;
  for_each_piece((s.n + size - 1) / size, parallel ? s.threads : 1, [&](int64_t i) {
    kernel(samples, normalizer, s, w, bias, relu, next.data(), static_cast<int64_t>(next.size()), y,
           i * size, std::min(s.n, (i + 1) * size));
  });
}

}  // namespace mase::kernels
#endif
