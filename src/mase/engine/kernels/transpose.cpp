// SPDX-License-Identifier: Apache-2.0
// Row-major samples to rows of features and back. Eight samples by four features at a time are
// transposed in registers; the samples of a shuffled batch are spread over the memory, so those to
// come are prefetched. Back with AVX-512 sixteen samples at a time, by permutations of two rows.
#include <algorithm>
#include <cstring>

#include "mase/engine/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/transpose.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "mase/engine/kernels/transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// One value; what is left when there are no more whole vectors.
HWY_INLINE float NormalizedOne(float x, const Normalizer& by, int64_t feature) {
  const hn::CappedTag<float, 1> one;
  const auto y =
      hn::MulAdd(hn::Set(one, x), hn::Set(one, by.scale[feature]), hn::Set(one, by.shift[feature]));
  return hn::GetLane(hn::Max(hn::Set(one, by.low), y));  // in this order NaN stays
}

#if HWY_TARGET != HWY_SCALAR
// kVectors vectors of samples, whose rows begin at `at`; columns [b, ...) of out.
template <bool kNormalize, int kVectors>
HWY_INLINE void GatherColumns(const float* const* at, int64_t features, float* HWY_RESTRICT out,
                              int64_t stride, const Normalizer* by) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t f = 0;
  for (; f + 4 <= features; f += 4) {
    V v[kVectors][4];
    for (int64_t k = 0; k < kVectors; ++k) {
      for (int64_t i = 0; i < 4; ++i) v[k][i] = LoadBlocks(at, k * lanes + i, f);
      TransposeBlocks(d, v[k][0], v[k][1], v[k][2], v[k][3]);
    }
    for (int64_t i = 0; i < 4; ++i) {
      if constexpr (kNormalize) {
        const V scale = hn::Set(d, by->scale[f + i]), shift = hn::Set(d, by->shift[f + i]),
                low = hn::Set(d, by->low);
        for (int64_t k = 0; k < kVectors; ++k)
          v[k][i] = hn::Max(low, hn::MulAdd(v[k][i], scale, shift));  // in this order NaN stays
      }
      for (int64_t k = 0; k < kVectors; ++k)
        hn::StoreU(v[k][i], d, out + (f + i) * stride + k * lanes);
    }
  }
  for (; f < features; ++f)
    for (int64_t i = 0; i < kVectors * lanes; ++i)
      out[f * stride + i] = kNormalize ? NormalizedOne(at[i][f], *by, f) : at[i][f];
}
#endif

template <bool kNormalize>
HWY_INLINE void GatherRows(const float* source, int64_t features, const uint32_t* rows,
                           int64_t first, int64_t n, float* out, int64_t stride,
                           const Normalizer* by) {
  const auto row_at = [=](int64_t b) {
    return source + (rows ? static_cast<int64_t>(rows[b]) : first + b) * features;
  };
  int64_t b = 0;
#if HWY_TARGET != HWY_SCALAR
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  constexpr int64_t ahead = 32;
  const auto prefetch = [=](int64_t from, int64_t to) {
    for (int64_t i = from; i < std::min(to, n); ++i) {
      const float* row = row_at(i);
      for (int64_t f = 0; f < features && f < 256; f += 16) hwy::Prefetch(row + f);
    }
  };
  if (rows) prefetch(0, ahead);
  const float* at[16];
  for (; b + 2 * lanes <= n; b += 2 * lanes) {
    if (rows) prefetch(b + ahead, b + ahead + 2 * lanes);
    for (int64_t i = 0; i < 2 * lanes; ++i) at[i] = row_at(b + i);
    GatherColumns<kNormalize, 2>(at, features, out + b, stride, by);
  }
  for (; b + lanes <= n; b += lanes) {
    for (int64_t i = 0; i < lanes; ++i) at[i] = row_at(b + i);
    GatherColumns<kNormalize, 1>(at, features, out + b, stride, by);
  }
#endif
  for (; b < n; ++b) {
    const float* row = row_at(b);
    for (int64_t f = 0; f < features; ++f)
      out[f * stride + b] = kNormalize ? NormalizedOne(row[f], *by, f) : row[f];
  }
}

uint32_t LargestRow(const uint32_t* rows, int64_t n) {
  const hn::ScalableTag<uint32_t> d;
  const auto width = static_cast<int64_t>(hn::Lanes(d));
  auto even = hn::Zero(d), odd = even;
  int64_t i = 0;
  for (; i + 2 * width <= n; i += 2 * width) {
    even = hn::Max(even, hn::LoadU(d, rows + i));
    odd = hn::Max(odd, hn::LoadU(d, rows + i + width));
  }
  uint32_t largest = hn::GetLane(hn::MaxOfLanes(d, hn::Max(even, odd)));
  for (; i < n; ++i) largest = rows[i] > largest ? rows[i] : largest;
  return largest;
}

void Gather(const float* source, int64_t features, const uint32_t* rows, int64_t first, int64_t n,
            float* out, int64_t stride, const Normalizer* normalizer) {
  if (normalizer)
    GatherRows<true>(source, features, rows, first, n, out, stride, normalizer);
  else
    GatherRows<false>(source, features, rows, first, n, out, stride, nullptr);
}

#if HWY_TARGET != HWY_SCALAR
// One vector of samples of three to eight features: each sample is stored as eight floats, the
// surplus being overwritten by the samples that follow.
template <int kFeatures>
HWY_INLINE void ScatterNarrow(const float* in, int64_t stride, float* HWY_RESTRICT out) {
  const D d;
  const D4 d4;
  V low[4], high[4];
  for (int f = 0; f < 4; ++f) {
    low[f] = f < kFeatures ? hn::LoadU(d, in + f * stride) : hn::Zero(d);
    high[f] = f + 4 < kFeatures ? hn::LoadU(d, in + (f + 4) * stride) : hn::Zero(d);
  }
  TransposeBlocks(d, low[0], low[1], low[2], low[3]);
  if (kFeatures > 4) TransposeBlocks(d, high[0], high[1], high[2], high[3]);
#if HWY_MAX_BYTES >= 32
  for (int i = 0; i < 4; ++i) {
    float* to = out + i * kFeatures;
    if (kFeatures > 4)
      hn::StoreU(hn::ConcatLowerLower(d, high[i], low[i]), d, to);
    else
      hn::StoreU(hn::LowerHalf(d4, low[i]), d4, to);
  }
  for (int i = 0; i < 4; ++i) {
    float* to = out + (4 + i) * kFeatures;
    if (kFeatures > 4)
      hn::StoreU(hn::ConcatUpperUpper(d, high[i], low[i]), d, to);
    else
      hn::StoreU(hn::UpperHalf(d4, low[i]), d4, to);
  }
#else
  (void)d4;
  for (int i = 0; i < 4; ++i) {
    hn::StoreU(low[i], d, out + i * kFeatures);
    if (kFeatures > 4) hn::StoreU(high[i], d, out + i * kFeatures + 4);
  }
#endif
}

// Whole vectors of samples; how many samples that is, is returned.
template <int kFeatures>
int64_t ScatterWhole(const float* in, int64_t stride, int64_t n, float* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t b = 0;
  for (; b + lanes < n; b += lanes) ScatterNarrow<kFeatures>(in + b, stride, out + b * kFeatures);
  if (b + lanes == n) {  // nothing follows to overwrite the surplus
    float last[8 * kFeatures + 8];
    ScatterNarrow<kFeatures>(in + b, stride, last);
    std::memcpy(out + b * kFeatures, last, static_cast<size_t>(lanes * kFeatures) * sizeof(float));
    b = n;
  }
  return b;
}
#endif

#if HWY_ARCH_X86 && HWY_MAX_BYTES >= 64
// Sixteen samples are as many vectors as they have features. Where the values of each vector lie in
// each pair of rows, as the processor's permutations of two vectors want to know it, and which of
// them are in that pair.
template <int kFeatures>
struct PairsOfRows {
  static constexpr int kPairs = (kFeatures + 1) / 2;
  alignas(64) int32_t places[kFeatures][kPairs][16] = {};
  uint16_t chosen[kFeatures][kPairs] = {};

  constexpr PairsOfRows() {
    for (int v = 0; v < kFeatures; ++v)
      for (int i = 0; i < 16; ++i) {
        const int sample = (16 * v + i) / kFeatures, feature = (16 * v + i) % kFeatures;
        places[v][feature / 2][i] = sample + 16 * (feature % 2);
        chosen[v][feature / 2] = static_cast<uint16_t>(chosen[v][feature / 2] | 1 << i);
      }
  }
};

// Sixteen samples at a time, in whole vectors; how many samples that is, is returned.
template <int kFeatures>
int64_t ScatterSixteen(const float* in, int64_t stride, int64_t n, float* HWY_RESTRICT out) {
  static constexpr PairsOfRows<kFeatures> pairs;
  const hn::FixedTag<float, 16> d;
  int64_t b = 0;
  for (; b + 16 <= n; b += 16) {
    hn::Vec<decltype(d)> rows[kFeatures + 1];
    for (int f = 0; f < kFeatures; ++f) rows[f] = hn::LoadU(d, in + f * stride + b);
    rows[kFeatures] = rows[kFeatures - 1];  // of an odd number; nothing of it is chosen
    for (int v = 0; v < kFeatures; ++v) {
      __m512 result = rows[0].raw;
      for (int p = 0; p < pairs.kPairs; ++p) {
        const __m512i places = _mm512_load_si512(pairs.places[v][p]);
        const __m512 both = _mm512_permutex2var_ps(rows[2 * p].raw, places, rows[2 * p + 1].raw);
        result = p == 0 ? both : _mm512_mask_mov_ps(result, pairs.chosen[v][p], both);
      }
      _mm512_storeu_ps(out + b * kFeatures + 16 * v, result);
    }
  }
  return b;
}
#endif

void Scatter(const float* in, int64_t features, int64_t stride, int64_t n, float* out) {
#if HWY_ARCH_X86 && HWY_MAX_BYTES >= 64
  int64_t done = 0;
  if (features == 3) done = ScatterSixteen<3>(in, stride, n, out);
  if (features == 5) done = ScatterSixteen<5>(in, stride, n, out);
  if (features == 6) done = ScatterSixteen<6>(in, stride, n, out);
  in += done;
  n -= done;
  out += done * features;
#endif
  int64_t b = 0;
#if HWY_TARGET != HWY_SCALAR
  if (features == 3) b = ScatterWhole<3>(in, stride, n, out);
  if (features == 4) b = ScatterWhole<4>(in, stride, n, out);
  if (features == 5) b = ScatterWhole<5>(in, stride, n, out);
  if (features == 6) b = ScatterWhole<6>(in, stride, n, out);
  if (features == 7) b = ScatterWhole<7>(in, stride, n, out);
  if (features == 8) b = ScatterWhole<8>(in, stride, n, out);
  const D4 d;
  for (; b + 4 <= n; b += 4) {
    int64_t f = 0;
    for (; f + 4 <= features; f += 4) {
      const float* from = in + f * stride + b;
      auto v0 = hn::LoadU(d, from), v1 = hn::LoadU(d, from + stride),
           v2 = hn::LoadU(d, from + 2 * stride), v3 = hn::LoadU(d, from + 3 * stride);
      TransposeBlocks(d, v0, v1, v2, v3);
      float* to = out + b * features + f;
      hn::StoreU(v0, d, to);
      hn::StoreU(v1, d, to + features);
      hn::StoreU(v2, d, to + 2 * features);
      hn::StoreU(v3, d, to + 3 * features);
    }
    for (; f < features; ++f)
      for (int64_t i = 0; i < 4; ++i) out[(b + i) * features + f] = in[f * stride + b + i];
  }
#endif
  for (; b < n; ++b)
    for (int64_t f = 0; f < features; ++f) out[b * features + f] = in[f * stride + b];
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::kernels {

HWY_EXPORT(LargestRow);
HWY_EXPORT(Gather);
HWY_EXPORT(Scatter);

uint32_t largest_row(const uint32_t* rows, int64_t n) {
  return HWY_DYNAMIC_DISPATCH(LargestRow)(rows, n);
}

void gather(const float* source, int64_t features, const uint32_t* rows, int64_t first, int64_t n,
            float* out, int64_t stride, const Normalizer* normalizer) {
  HWY_DYNAMIC_DISPATCH(Gather)(source, features, rows, first, n, out, stride, normalizer);
}

void scatter(const float* in, int64_t features, int64_t stride, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(Scatter)(in, features, stride, n, out);
}

}  // namespace mase::kernels
#endif
