// SPDX-License-Identifier: Apache-2.0
// Row-major samples to rows of features and back. Eight samples by four features at a time are
// transposed in registers; the samples of a shuffled batch are spread over the memory, so those to
// come are prefetched.
#include <algorithm>

#include "mase/engine/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/transpose.cpp"
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSSE3)
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

#if HWY_TARGET != HWY_SCALAR
using D = hn::CappedTag<float, 8>;  // whole blocks of four lanes: one or two
using V = hn::Vec<D>;
using D4 = hn::FixedTag<float, 4>;

// Four floats of each of lanes / 4 pointers, one behind the other.
HWY_INLINE V LoadBlocks(const float* const* rows, int64_t offset) {
  const D d;
  const D4 d4;
#if HWY_MAX_BYTES >= 32
  return hn::Combine(d, hn::LoadU(d4, rows[4] + offset), hn::LoadU(d4, rows[0] + offset));
#else
  (void)d;
  return hn::LoadU(d4, rows[0] + offset);
#endif
}

// A 4 x 4 transposition inside each block.
HWY_INLINE void Transpose(V& a, V& b, V& c, V& e) {
  const D d;
  const hn::Repartition<double, D> d64;
  const auto low_ab = hn::BitCast(d64, hn::InterleaveLower(d, a, b));
  const auto high_ab = hn::BitCast(d64, hn::InterleaveUpper(d, a, b));
  const auto low_ce = hn::BitCast(d64, hn::InterleaveLower(d, c, e));
  const auto high_ce = hn::BitCast(d64, hn::InterleaveUpper(d, c, e));
  a = hn::BitCast(d, hn::InterleaveLower(d64, low_ab, low_ce));
  b = hn::BitCast(d, hn::InterleaveUpper(d64, low_ab, low_ce));
  c = hn::BitCast(d, hn::InterleaveLower(d64, high_ab, high_ce));
  e = hn::BitCast(d, hn::InterleaveUpper(d64, high_ab, high_ce));
}
#endif

void Gather(const float* source, int64_t features, const uint32_t* rows, int64_t first, int64_t n,
            float* out, int64_t stride) {
  const auto row_at = [=](int64_t b) {
    return source + (rows ? static_cast<int64_t>(rows[b]) : first + b) * features;
  };
  int64_t b = 0;
#if HWY_TARGET != HWY_SCALAR
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  constexpr int64_t ahead = 32;
  const auto prefetch = [=](int64_t from, int64_t to) {
    for (int64_t i = from; i < std::min(to, n); ++i) {
      const float* row = row_at(i);
      for (int64_t f = 0; f < features && f < 256; f += 16) hwy::Prefetch(row + f);
    }
  };
  if (rows) prefetch(0, ahead);
  const float* at[8];
  for (; b + lanes <= n; b += lanes) {
    if (rows) prefetch(b + ahead, b + ahead + lanes);
    for (int64_t i = 0; i < lanes; ++i) at[i] = row_at(b + i);
    int64_t f = 0;
    for (; f + 4 <= features; f += 4) {
      V v0 = LoadBlocks(at, f), v1 = LoadBlocks(at + 1, f), v2 = LoadBlocks(at + 2, f),
        v3 = LoadBlocks(at + 3, f);
      Transpose(v0, v1, v2, v3);
      float* to = out + f * stride + b;
      hn::StoreU(v0, d, to);
      hn::StoreU(v1, d, to + stride);
      hn::StoreU(v2, d, to + 2 * stride);
      hn::StoreU(v3, d, to + 3 * stride);
    }
    for (; f < features; ++f)
      for (int64_t i = 0; i < lanes; ++i) out[f * stride + b + i] = at[i][f];
  }
#endif
  for (; b < n; ++b) {
    const float* row = row_at(b);
    for (int64_t f = 0; f < features; ++f) out[f * stride + b] = row[f];
  }
}

void Scatter(const float* in, int64_t features, int64_t stride, int64_t n, float* out) {
  int64_t b = 0;
#if HWY_TARGET != HWY_SCALAR
  const D4 d;
  const hn::Repartition<double, D4> d64;
  for (; b + 4 <= n; b += 4) {
    int64_t f = 0;
    for (; f + 4 <= features; f += 4) {
      const float* from = in + f * stride + b;
      const auto a = hn::LoadU(d, from), c = hn::LoadU(d, from + stride),
                 e = hn::LoadU(d, from + 2 * stride), g = hn::LoadU(d, from + 3 * stride);
      const auto low_ac = hn::BitCast(d64, hn::InterleaveLower(d, a, c));
      const auto high_ac = hn::BitCast(d64, hn::InterleaveUpper(d, a, c));
      const auto low_eg = hn::BitCast(d64, hn::InterleaveLower(d, e, g));
      const auto high_eg = hn::BitCast(d64, hn::InterleaveUpper(d, e, g));
      float* to = out + b * features + f;
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, low_ac, low_eg)), d, to);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, low_ac, low_eg)), d, to + features);
      hn::StoreU(hn::BitCast(d, hn::InterleaveLower(d64, high_ac, high_eg)), d, to + 2 * features);
      hn::StoreU(hn::BitCast(d, hn::InterleaveUpper(d64, high_ac, high_eg)), d, to + 3 * features);
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

HWY_EXPORT(Gather);
HWY_EXPORT(Scatter);

void gather(const float* source, int64_t features, const uint32_t* rows, int64_t first, int64_t n,
            float* out, int64_t stride) {
  HWY_DYNAMIC_DISPATCH(Gather)(source, features, rows, first, n, out, stride);
}

void scatter(const float* in, int64_t features, int64_t stride, int64_t n, float* out) {
  HWY_DYNAMIC_DISPATCH(Scatter)(in, features, stride, n, out);
}

}  // namespace mase::kernels
#endif
