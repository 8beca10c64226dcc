// SPDX-License-Identifier: Apache-2.0
// Gathering, normalising and a small linear layer in one sweep. Two vectors of samples at a time
// are transposed into a tile of a few kilobytes on the stack and multiplied from there: the
// shuffles of one tile fill the pipes that the multiply-adds of the tile before leave free, and the
// transposed batch is never written. Each result is summed in the order of `linear`.
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

#if HWY_TARGET == HWY_SCALAR || (HWY_ARCH_X86 && HWY_MAX_BYTES >= 64)
using Wide = hn::ScalableTag<float>;
#else
using Wide = D;
#endif
using WideV = hn::Vec<Wide>;
constexpr int64_t kMostFeatures = 64, kMostOutputs = 8;
constexpr auto kLanes = static_cast<int64_t>(hn::MaxLanes(Wide()));
constexpr int64_t kTile = 2 * kLanes;  // samples
constexpr int64_t kJets = 16;          // features of the data sets all of these networks are for

// max(low, x * scale + shift), in an order that keeps NaN.
HWY_INLINE WideV Normalized(const Normalizer& by, int64_t feature, WideV x) {
  const Wide d;
  return hn::Max(hn::Set(d, by.low),
                 hn::MulAdd(x, hn::Set(d, by.scale[feature]), hn::Set(d, by.shift[feature])));
}

// Features [begin, features) of a tile, one by one.
HWY_NOINLINE void FillSlowly(const float* const* at, int64_t begin, int64_t features,
                             const Normalizer* by, float* HWY_RESTRICT tile) {
  const Wide d;
  for (int64_t f = begin; f < features; ++f) {
    float* row = tile + f * kTile;
    for (int64_t i = 0; i < kTile; ++i) row[i] = at[i][f];
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

#if HWY_TARGET != HWY_SCALAR
template <class Rows>
HWY_INLINE WideV LoadRows(const Rows& at, int64_t i, int64_t f) {
#if HWY_ARCH_X86 && HWY_MAX_BYTES >= 64
  return LoadFourBlocks(at, i, f);
#else
  return LoadBlocks(at, i, f);
#endif
}
#endif

// All features but the last one, two or three; how many is returned.
template <bool kNormalize, class Rows>
HWY_INLINE int64_t Fill([[maybe_unused]] const Rows& at, [[maybe_unused]] int64_t features,
                        [[maybe_unused]] const Normalizer* normalizer,
                        [[maybe_unused]] float* HWY_RESTRICT tile) {
  int64_t f = 0;
#if HWY_TARGET != HWY_SCALAR
  const Wide d;
  // Own copies: nothing that is stored can change them.
  const Normalizer by = kNormalize ? *normalizer : Normalizer{};
  const WideV low = hn::Set(d, by.low);
  for (; f + 4 <= features; f += 4) {
    WideV v[2][4];
    for (int64_t k = 0; k < 2; ++k) {
      for (int64_t i = 0; i < 4; ++i) v[k][i] = LoadRows(at, k * kLanes + i, f);
      TransposeBlocks(d, v[k][0], v[k][1], v[k][2], v[k][3]);
    }
    for (int64_t i = 0; i < 4; ++i) {
      float* row = tile + (f + i) * kTile;
      if (kNormalize) {
        const WideV scale = hn::Set(d, by.scale[f + i]), shift = hn::Set(d, by.shift[f + i]);
        for (auto& half : v) half[i] = hn::Max(low, hn::MulAdd(half[i], scale, shift));
      }
      hn::Store(v[0][i], d, row);
      hn::Store(v[1][i], d, row + kLanes);
    }
  }
#endif
  return f;
}

struct Layer {
  int64_t in, out, out_step, in_step;
  const float *w, *bias;
  float low;  // max(low, result): 0 is a relu, -inf none

  HWY_INLINE bool RowByRow() const { return out_step == in && in_step == 1; }
};

// kRows outputs of kVectors vectors of a tile. kIn > 0: so many inputs, whose weights lie row by
// row: with known distances the addresses need no instructions, which is a sixth of all.
template <int kRows, int kVectors, int64_t kIn>
HWY_INLINE void MultiplyRows(const Layer& layer, int64_t first, const float* HWY_RESTRICT tile,
                             float* HWY_RESTRICT y, int64_t stride) {
  const Wide d;
  const int64_t in = kIn > 0 ? kIn : layer.in, in_step = kIn > 0 ? 1 : layer.in_step,
                out_step = kIn > 0 ? kIn : layer.out_step;
  const float* weights[kRows];
  for (int r = 0; r < kRows; ++r) weights[r] = layer.w + (first + r) * out_step;
  WideV sum[kRows][kVectors];
  for (int r = 0; r < kRows; ++r)
    for (WideV& v : sum[r]) v = layer.bias ? hn::Set(d, layer.bias[first + r]) : hn::Zero(d);
  for (int64_t k = 0, at = 0; k < in; ++k, at += in_step) {
    WideV value[kVectors];
    for (int v = 0; v < kVectors; ++v) {
      value[v] = hn::Load(d, tile + k * kTile + v * kLanes);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
      asm("" : "+v"(value[v].raw));  // else GCC reads it from memory in each multiply-add
#endif
    }
    for (int r = 0; r < kRows; ++r) {
      const WideV weight = hn::Set(d, weights[r][at]);
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(weight, value[v], sum[r][v]);
    }
  }
  const WideV low = hn::Set(d, layer.low);
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v)
      hn::Store(hn::Max(low, sum[r][v]), d, y + (first + r) * stride + v * kLanes);
}

// All kOut outputs: as many at a time as there are registers for.
template <int kOut, int kVectors, int64_t kIn>
HWY_INLINE void MultiplyAll(const Layer& layer, const float* HWY_RESTRICT tile,
                            float* HWY_RESTRICT y, int64_t stride) {
  constexpr int most = HWY_MAX_BYTES >= 64 ? 8 : 6;
  if constexpr (kOut <= most) {
    MultiplyRows<kOut, kVectors, kIn>(layer, 0, tile, y, stride);
  } else {
    MultiplyRows<4, kVectors, kIn>(layer, 0, tile, y, stride);
    MultiplyRows<kOut - 4, kVectors, kIn>(layer, 4, tile, y, stride);
  }
}

template <int kOut>
HWY_NOINLINE void MultiplyNext(const Layer& layer, bool whole, const float* HWY_RESTRICT tile,
                               float* HWY_RESTRICT y, int64_t stride) {
  if (!whole)
    MultiplyAll<kOut, 1, 0>(layer, tile, y, stride);
  else if (layer.RowByRow() && layer.in == kMostOutputs)
    MultiplyAll<kOut, 2, kMostOutputs>(layer, tile, y, stride);
  else
    MultiplyAll<kOut, 2, 0>(layer, tile, y, stride);
}

// A layer behind the first: of a tile or, if not `whole`, of its first half.
HWY_INLINE void Multiply(const Layer& layer, bool whole, const float* tile, float* y,
                         int64_t stride) {
  constexpr decltype(&MultiplyNext<1>) functions[] = {
      MultiplyNext<1>, MultiplyNext<2>, MultiplyNext<3>, MultiplyNext<4>,
      MultiplyNext<5>, MultiplyNext<6>, MultiplyNext<7>, MultiplyNext<8>};
  functions[layer.out - 1](layer, whole, tile, y, stride);
}

#if HWY_ARCH_X86 && HWY_MAX_BYTES >= 64
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
  for (int64_t b = 0; b < n; b += kLanes) {
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

// Samples [begin, end) through all layers, a tile at a time; the first has kOut outputs. kKnown:
// consecutive samples of kJets features, and weights row by row; kAlone: no layer behind it, so
// that nothing of its loop is kept in memory over a call.
template <bool kNormalize, bool kKnown, bool kAlone, int kOut>
void Tiles(const Samples& samples, const Normalizer* normalizer, const Layer* layers, int64_t count,
           float* y, int64_t stride, int64_t begin, int64_t end) {
  HWY_ALIGN float tile[kMostFeatures * kTile];
  HWY_ALIGN float between[2][kMostOutputs * kTile];
  const Layer first = layers[0];
  const int64_t features = kKnown ? kJets : first.in;
  const auto row_at = [=](int64_t b) {
    return samples.source +
           (samples.rows ? static_cast<int64_t>(samples.rows[b]) : samples.first + b) * features;
  };
  for (int64_t b = begin; b < end; b += kTile) {
    if (kKnown && b + kTile <= end) {
      Fill<kNormalize>(Consecutive{row_at(b), features}, features, normalizer, tile);
    } else {
      constexpr int64_t ahead = 32;
      const float* at[kTile];  // missing samples repeat the last one
      for (int64_t i = 0; i < kTile; ++i) at[i] = row_at(std::min(b + i, end - 1));
      for (int64_t i = b + ahead; samples.rows && i < std::min(b + ahead + kTile, end); ++i)
        for (int64_t f = 0; f < features; f += 16) hwy::Prefetch(row_at(i) + f);
      const int64_t done = Fill<kNormalize>(at, features, normalizer, tile);
      if (done < features) FillSlowly(at, done, features, normalizer, tile);
    }
    // Rows of results end with a whole vector of 16.
    const bool whole = kTile <= 16 || end - b > kLanes;
    float* to = kAlone ? y + b : between[0];
    const int64_t step = kAlone ? stride : kTile;
    if (whole)
      MultiplyAll<kOut, 2, kKnown ? kJets : 0>(first, tile, to, step);
    else
      MultiplyAll<kOut, 1, kKnown ? kJets : 0>(first, tile, to, step);
    for (int64_t i = 1; !kAlone && i < count; ++i) {
      const float* from = between[(i + 1) % 2];
      to = i + 1 == count ? y + b : between[i % 2];
      Multiply(layers[i], whole, from, to, i + 1 == count ? stride : kTile);
    }
  }
}

template <bool kNormalize, bool kKnown, bool kAlone>
auto TilesFor(int64_t out) {
  constexpr decltype(&Tiles<kNormalize, kKnown, kAlone, 1>) functions[] = {
      Tiles<kNormalize, kKnown, kAlone, 1>, Tiles<kNormalize, kKnown, kAlone, 2>,
      Tiles<kNormalize, kKnown, kAlone, 3>, Tiles<kNormalize, kKnown, kAlone, 4>,
      Tiles<kNormalize, kKnown, kAlone, 5>, Tiles<kNormalize, kKnown, kAlone, 6>,
      Tiles<kNormalize, kKnown, kAlone, 7>, Tiles<kNormalize, kKnown, kAlone, 8>};
  return functions[out - 1];
}

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
  const int64_t n = (end - begin) / kLanes * kLanes, out = layers[count - 1].out;
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
  const bool known = layers[0].in == kJets && layers[0].RowByRow() && !samples.rows;
  if (known)
    begin += GatherInRegisters(samples, normalizer, layers, count, y, shape.stride, begin, end);
  if (begin == end) return;
  const auto tiles_for = [&]<bool kNormalize>() {
    if (count > 1) return TilesFor<kNormalize, false, false>(shape.out);
    return known ? TilesFor<kNormalize, true, true>(shape.out)
                 : TilesFor<kNormalize, false, true>(shape.out);
  };
  const auto tiles =
      normalizer ? tiles_for.template operator()<true>() : tiles_for.template operator()<false>();
  tiles(samples, normalizer, layers, count, y, shape.stride, begin, end);
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
