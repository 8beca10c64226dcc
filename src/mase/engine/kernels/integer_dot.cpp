// SPDX-License-Identifier: Apache-2.0
// The tiles of shifted.cpp with four products in each lane: 6 outputs by 4 vectors of 16 lanes.
#include "mase/engine/kernels/integer_dot.h"

#include <hwy/highway.h>
#include <hwy/targets.h>

#include <algorithm>
#include <cmath>

#include "mase/engine/kernels/instruction_set.h"
#include "mase/engine/kernels/parallel.h"
#include "mase/engine/kernels/vnni.h"

namespace mase::kernels {
namespace {

constexpr int64_t integer_parallel_work = int64_t{1} << 20;  // as in shifted.cpp

int64_t quads_of(int64_t rows) { return (rows + quad - 1) / quad; }

}  // namespace

namespace reference {

bool pack_quads(const Quads& s, const float* x, uint32_t* out) {
  for (int64_t q = 0; q < quads_of(s.rows); ++q)
    for (int64_t l = 0; l < s.n; ++l) {
      uint32_t word = 0;
      for (int64_t r = 0; r < quad; ++r) {
        const int64_t row = q * quad + r;
        const float code = row < s.rows ? x[row * s.stride + l] * s.scale : 0.0f;
        if (!(code >= static_cast<float>(-s.offset) &&
              code <= static_cast<float>(255 - s.offset)) ||
            code != std::floor(code))
          return false;
        word |= static_cast<uint32_t>(static_cast<int32_t>(code) + s.offset) << (8 * r);
      }
      out[q * s.out_stride + l] = word;
    }
  return true;
}

void integer_linear(const ShiftedShape& s, const uint32_t* w, const int32_t* start, float unit,
                    const float* bias, const uint32_t* x, float* y, const Finish& finish) {
  for (int64_t piece = 0; piece < s.segments; ++piece)
    for (int64_t o = 0; o < s.out; ++o)
      for (int64_t l = 0; l < s.n; ++l) {
        float total = bias ? bias[o] : 0.0f;
        for (int64_t k = 0; k == 0 || k < s.in; k += integer_longest_sum) {
          int32_t sum = start[k / integer_longest_sum * s.out + o];
          for (int64_t i = k; i < std::min(s.in, k + integer_longest_sum); ++i) {
            const uint32_t weights = w[o * s.out_step + i * s.in_step];
            const uint32_t values = x[s.offsets[i] + piece * s.x_step + l];
            for (int r = 0; r < 4; ++r)
              sum += static_cast<int8_t>(weights >> (8 * r)) *
                     static_cast<int32_t>(values >> (8 * r) & 255);
          }
          total += static_cast<float>(sum) * unit;
        }
        const int64_t at = o * s.y_stride + piece * s.y_step + l;
        if (finish.add) total += finish.add[at];
        y[at] = total < finish.low ? finish.low : total > finish.high ? finish.high : total;
      }
}

}  // namespace reference

#if defined(__x86_64__)

bool has_integer_dot() {
  // Not where portable instructions were asked for, which happens before anything is computed.
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512vnni") && (enabled_targets() & HWY_AVX3);
  return has;
}

namespace {

MASE_VNNI bool pack_quad_row(const Quads& s, const float* x, int64_t rows, uint32_t* out) {
  const __m512 scale = _mm512_set1_ps(s.scale);
  const __m512i offset = _mm512_set1_epi32(s.offset);
  __mmask16 good = 0xffff;
  for (int64_t l = 0; l < s.n; l += 16) {
    const int64_t left = s.n - l;
    const auto valid = static_cast<__mmask16>(left >= 16 ? 0xffff : (1u << left) - 1);
    __m512i word = _mm512_setzero_si512();
    for (int64_t r = 0; r < quad; ++r) {
      __m512i byte = offset;
      if (r < rows) {
        byte = vnni::bytes(_mm512_maskz_loadu_ps(valid, x + r * s.stride + l), scale, offset, good);
      }
      word = _mm512_or_si512(word,
                             _mm512_sllv_epi32(byte, _mm512_set1_epi32(static_cast<int>(8 * r))));
    }
    _mm512_mask_storeu_epi32(out + l, valid, word);
  }
  return good == 0xffff;
}

// kRows outputs for kVectors vectors of lanes, `last` the lanes of the last one that count.
template <int kRows, int kVectors>
MASE_VNNI __attribute__((noinline)) void integer_tile(const ShiftedShape& s, const uint32_t* w,
                                                      const int32_t* start,
                                                      const IntegerTotals& totals,
                                                      const uint32_t* x, float* y, __mmask16 last) {
  __m512i sum[kRows][kVectors];
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) sum[r][v] = _mm512_set1_epi32(start[r]);
  }
  int64_t at = 0;
  for (int64_t k = 0; k < s.in; ++k, at += s.in_step) {
    const uint32_t* row = x + s.offsets[k];
    __m512i value[kVectors];
    HWY_UNROLL(8)
    for (int v = 0; v + 1 < kVectors; ++v) value[v] = _mm512_loadu_si512(row + v * 16);
    value[kVectors - 1] = _mm512_maskz_loadu_epi32(last, row + (kVectors - 1) * 16);
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      const __m512i weight = _mm512_set1_epi32(static_cast<int>(w[r * s.out_step + at]));
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) vnni::multiply_add(sum[r][v], value[v], weight);
    }
  }
  const __m512 unit = _mm512_set1_ps(totals.unit);
  const __m512 low = _mm512_set1_ps(totals.finish.low), high = _mm512_set1_ps(totals.finish.high);
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) {
      float* to = y + r * s.y_stride + v * 16;
      const __mmask16 valid = v + 1 < kVectors ? static_cast<__mmask16>(0xffff) : last;
      const __m512 before =
          totals.bias ? _mm512_set1_ps(totals.bias[r]) : _mm512_maskz_loadu_ps(valid, to);
      __m512 result = _mm512_add_ps(before, _mm512_mul_ps(_mm512_cvtepi32_ps(sum[r][v]), unit));
      if (totals.finish.add)
        result = _mm512_add_ps(
            result, _mm512_maskz_loadu_ps(valid, totals.finish.add + r * s.y_stride + v * 16));
      result = _mm512_min_ps(high, _mm512_max_ps(low, result));  // in this order NaN stays
      _mm512_mask_storeu_ps(to, valid, result);
    }
  }
}

template <int kVectors>
void integer_bands(const ShiftedShape& s, const uint32_t* w, const int32_t* start,
                   const IntegerTotals& totals, const uint32_t* x, float* y, __mmask16 last) {
  int64_t bands = (s.out + 5) / 6;
  for (int64_t o = 0; bands > 0; --bands) {
    const int64_t height = (s.out - o + bands - 1) / bands;
    IntegerTotals own = totals;
    if (own.bias) own.bias += o;
    own.finish = totals.finish.at(o * s.y_stride);
    const auto run = height == 6   ? integer_tile<6, kVectors>
                     : height == 5 ? integer_tile<5, kVectors>
                     : height == 4 ? integer_tile<4, kVectors>
                     : height == 3 ? integer_tile<3, kVectors>
                     : height == 2 ? integer_tile<2, kVectors>
                                   : integer_tile<1, kVectors>;
    run(s, w + o * s.out_step, start + o, own, x, y + o * s.y_stride, last);
    o += height;
  }
}

// One segment of s.n lanes.
void integer_segment(const ShiftedShape& s, const uint32_t* w, const int32_t* start,
                     const IntegerTotals& totals, const uint32_t* x, float* y) {
  for (int64_t first = 0; first < s.n; first += 64) {
    const int64_t left = std::min<int64_t>(64, s.n - first), vectors = (left + 15) / 16;
    const auto last = static_cast<__mmask16>((1u << (left - (vectors - 1) * 16)) - 1);
    const auto run = vectors == 4   ? integer_bands<4>
                     : vectors == 3 ? integer_bands<3>
                     : vectors == 2 ? integer_bands<2>
                                    : integer_bands<1>;
    run(s, w, start, {totals.unit, totals.bias, totals.finish.at(first)}, x + first, y + first,
        last);
  }
}

}  // namespace

bool pack_quads(const Quads& s, const float* x, uint32_t* out) {
  if (!has_integer_dot()) return reference::pack_quads(s, x, out);
  for (int64_t q = 0; q < quads_of(s.rows); ++q)
    if (!pack_quad_row(s, x + q * quad * s.stride, std::min(quad, s.rows - q * quad),
                       out + q * s.out_stride))
      return false;
  return true;
}

void integer_linear(const ShiftedShape& s, const uint32_t* w, const int32_t* start, float unit,
                    const float* bias, const uint32_t* x, float* y, const Finish& finish,
                    IntegerSegment* segment) {
  if (!segment && !has_integer_dot())
    return reference::integer_linear(s, w, start, unit, bias, x, y, finish);
  const bool parallel =
      s.threads > 1 && s.out * s.in * quad * s.n * s.segments >= integer_parallel_work;
  if (!segment) segment = integer_segment;
  constexpr int64_t block = 1024;
  const int64_t blocks = std::max<int64_t>(1, (s.n + block - 1) / block);
  for (int64_t k = 0; k == 0 || k < s.in; k += integer_longest_sum) {
    ShiftedShape part = s;
    part.in = std::min(integer_longest_sum, s.in - k);
    part.offsets = s.offsets + k;
    const bool last = k + part.in >= s.in;
    for_each_piece(s.segments * blocks, parallel ? s.threads : 1, [&](int64_t i) {
      ShiftedShape own = part;
      const int64_t piece = i / blocks, first = i % blocks * block;
      own.n = std::min(block, s.n - first);
      const int64_t at = piece * s.y_step + first;
      const IntegerTotals totals{unit, k == 0 ? bias : nullptr, last ? finish.at(at) : Finish{}};
      float* to = y + at;
      if (k == 0 && !bias)
        for (int64_t o = 0; o < s.out; ++o) std::fill_n(to + o * s.y_stride, own.n, 0.0f);
      segment(own, w + k * s.in_step, start + k / integer_longest_sum * s.out, totals,
              x + piece * s.x_step + first, to);
    });
  }
}

#else

bool has_integer_dot() { return false; }
bool pack_quads(const Quads& s, const float* x, uint32_t* out) {
  return reference::pack_quads(s, x, out);
}
void integer_linear(const ShiftedShape& s, const uint32_t* w, const int32_t* start, float unit,
                    const float* bias, const uint32_t* x, float* y, const Finish& finish,
                    IntegerSegment*) {
  reference::integer_linear(s, w, start, unit, bias, x, y, finish);
}

#endif

}  // namespace mase::kernels
