// SPDX-License-Identifier: Apache-2.0
#include "mase/search/kernels/integer_hits.h"

#include <hwy/base.h>

#include <algorithm>

#include "mase/base/error.h"
#include "mase/engine/kernels/vnni.h"

namespace mase::search {

bool rounds_to_quads(const IntegerSpec& spec) {
  return spec.rounding == Rounding::nearest_even && spec.wrap == 0 && spec.low >= -128 &&
         spec.high <= (spec.low < 0 ? 127 : 255);
}

#if defined(__x86_64__)

namespace {

constexpr int64_t hit_lanes = 16;
constexpr int most_vectors = 4, most_rows = 6;

// The largest of the classes so far, and which it is.
struct Leaders {
  __m512 top[most_vectors];
  __m512i best[most_vectors];
};

// kRows classes from `first` on for kVectors vectors of rows.
template <int kRows, int kVectors>
MASE_VNNI __attribute__((noinline)) void hit_band(const IntegerHits& layer, int64_t first,
                                                  const uint32_t* x, Leaders& leaders) {
  const IntegerHits s = layer;  // what is written below is not read anew from it
  __m512 top[kVectors];
  __m512i best[kVectors];
  HWY_UNROLL(8)
  for (int v = 0; v < kVectors; ++v) {
    top[v] = leaders.top[v];
    best[v] = leaders.best[v];
  }
  __m512i sum[kRows][kVectors];
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm512_set1_epi32(s.starts[first + r]);
  }
  const uint32_t* words = s.words + first * s.quads;
  for (int64_t k = 0; k < s.quads; ++k) {
    __m512i value[kVectors];
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v)
      value[v] = _mm512_loadu_si512(x + k * s.stride + v * hit_lanes);
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      const __m512i weight = _mm512_set1_epi32(static_cast<int>(words[r * s.quads + k]));
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) kernels::vnni::multiply_add(sum[r][v], value[v], weight);
    }
  }
  const __m512 unit = _mm512_set1_ps(s.unit), zero = _mm512_setzero_ps();
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    const int64_t c = first + r;
    const __m512 bias = s.bias ? _mm512_set1_ps(s.bias[c]) : zero;
    const __m512i index = _mm512_set1_epi32(static_cast<int>(c));
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      __m512 y = _mm512_add_ps(bias, _mm512_mul_ps(_mm512_cvtepi32_ps(sum[r][v]), unit));
      if (s.mean)
        y = _mm512_fnmadd_ps(_mm512_sub_ps(_mm512_set1_ps(s.mean[c]), y),
                             _mm512_set1_ps(s.factor[c]), _mm512_set1_ps(s.shift[c]));
      if (s.relu) y = _mm512_maskz_max_ps(0xffff, zero, y);  // GCC 12 warns of the plain one
      const __mmask16 larger =
          c == 0 ? static_cast<__mmask16>(0xffff) : _mm512_cmp_ps_mask(y, top[v], _CMP_GT_OQ);
      top[v] = _mm512_mask_mov_ps(top[v], larger, y);
      best[v] = _mm512_mask_mov_epi32(best[v], larger, index);
    }
  }
  HWY_UNROLL(8)
  for (int v = 0; v < kVectors; ++v) {
    leaders.top[v] = top[v];
    leaders.best[v] = best[v];
  }
}

template <int kVectors>
MASE_VNNI int64_t hits_of(const IntegerHits& s, const uint32_t* x, const int32_t* labels,
                          __mmask16 last) {
  Leaders leaders;
  HWY_UNROLL(8)
  for (int v = 0; v < kVectors; ++v) {
    leaders.top[v] = _mm512_setzero_ps();
    leaders.best[v] = _mm512_setzero_si512();
  }
  int64_t bands = (s.classes + most_rows - 1) / most_rows;
  for (int64_t c = 0; bands > 0; --bands) {
    const int64_t height = (s.classes - c + bands - 1) / bands;
    const auto run = height == 6   ? hit_band<6, kVectors>
                     : height == 5 ? hit_band<5, kVectors>
                     : height == 4 ? hit_band<4, kVectors>
                     : height == 3 ? hit_band<3, kVectors>
                     : height == 2 ? hit_band<2, kVectors>
                                   : hit_band<1, kVectors>;
    run(s, c, x, leaders);
    c += height;
  }
  int64_t count = 0;
  HWY_UNROLL(8)
  for (int v = 0; v < kVectors; ++v) {
    const __mmask16 equal =
        _mm512_cmpeq_epi32_mask(leaders.best[v], _mm512_loadu_si512(labels + v * hit_lanes));
    const auto valid = static_cast<__mmask16>(v + 1 < kVectors ? 0xffff : last);
    count += __builtin_popcount(static_cast<unsigned>(equal & valid));
  }
  return count;
}

}  // namespace

MASE_VNNI bool round_quads(const IntegerSpec& spec, const kernels::Quads& s, const float* x,
                           uint32_t* out) {
  const __m512 scale = _mm512_set1_ps(spec.scale), low = _mm512_set1_ps(spec.low),
               high = _mm512_set1_ps(spec.high);
  // Codes are added up in their places: negative ones borrow, and the offsets pay it back.
  const __m512i offsets =
      _mm512_set1_epi32(static_cast<int>(static_cast<uint32_t>(s.offset) * 0x01010101u));
  constexpr __mmask16 all = 0xffff;
  __mmask16 unordered = 0;
  for (int64_t first = 0; first < s.rows; first += kernels::quad, out += s.out_stride) {
    const int64_t rows = std::min(kernels::quad, s.rows - first);
    for (int64_t l = 0; l < s.n; l += hit_lanes) {
      __m512i word = offsets;
      for (int64_t r = 0; r < rows; ++r) {
        const __m512 value = _mm512_loadu_ps(x + (first + r) * s.stride + l);
        unordered |= _mm512_cmp_ps_mask(value, value, _CMP_UNORD_Q);
        // GCC 12 warns of the plain ones.
        const __m512 inside = _mm512_maskz_max_ps(
            all, _mm512_maskz_min_ps(all, _mm512_mul_ps(value, scale), high), low);
        word = _mm512_add_epi32(word,
                                _mm512_maskz_slli_epi32(all, _mm512_maskz_cvtps_epi32(all, inside),
                                                        static_cast<unsigned>(8 * r)));
      }
      _mm512_storeu_si512(out + l, word);
    }
  }
  return unordered == 0;
}

int64_t integer_hits(const IntegerHits& s, const uint32_t* x, const int32_t* labels) {
  constexpr int64_t most = hit_lanes * most_vectors;
  int64_t count = 0;
  for (int64_t first = 0; first < s.n; first += most) {
    const int64_t left = std::min(most, s.n - first), vectors = (left + hit_lanes - 1) / hit_lanes;
    const auto last = static_cast<__mmask16>((1u << (left - (vectors - 1) * hit_lanes)) - 1);
    const auto run = vectors == 4   ? hits_of<4>
                     : vectors == 3 ? hits_of<3>
                     : vectors == 2 ? hits_of<2>
                                    : hits_of<1>;
    count += run(s, x + first, labels + first, last);
  }
  return count;
}

#else

bool round_quads(const IntegerSpec&, const kernels::Quads&, const float*, uint32_t*) {
  throw InternalError("round_quads: this processor has no integer dot product");
}

int64_t integer_hits(const IntegerHits&, const uint32_t*, const int32_t*) {
  throw InternalError("integer_hits: this processor has no integer dot product");
}

#endif

}  // namespace mase::search
