// SPDX-License-Identifier: Apache-2.0
// Tiles of 6 samples by 4 vectors of 16 outputs. The instruction multiplies unsigned by signed
// bytes, so samples have 128 added, and sums begin with -128 times the sum of an output's weights.
#include "mase/engine/kernels/integer_rows.h"

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "mase/engine/kernels/vnni.h"

namespace mase::kernels {
namespace reference {

bool pack_rows(int64_t rows, int64_t in, const float* x, float scale, uint32_t* out) {
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t i = 0; i < in; i += quad) {
      uint32_t word = 0;
      for (int64_t b = 0; b < quad; ++b) {
        const float code = i + b < in ? x[r * in + i + b] * scale : 0.0f;
        if (!(code >= -128 && code <= 127) || code != std::floor(code)) return false;
        word |= static_cast<uint32_t>(static_cast<int32_t>(code) + 128) << (8 * b);
      }
      *out++ = word;
    }
  return true;
}

void integer_rows(const IntegerRows& s, const uint32_t* x, const uint32_t* w, float unit,
                  const float* bias, float* y) {
  for (int64_t r = 0; r < s.rows; ++r)
    for (int64_t o = 0; o < s.out; ++o) {
      int32_t sum = 0;
      for (int64_t i = 0; i < s.words() * quad; ++i) {
        const auto shift = 8 * (i % quad);
        sum += (static_cast<int32_t>(x[r * s.words() + i / quad] >> shift & 255) - 128) *
               static_cast<int8_t>(w[i / quad * s.out + o] >> shift);
      }
      y[r * s.out + o] = (bias ? bias[o] : 0.0f) + static_cast<float>(sum) * unit;
    }
}

}  // namespace reference

#if defined(__x86_64__)

namespace {

MASE_VNNI bool pack_row_bytes(int64_t in, const float* x, float factor, uint8_t* out) {
  const __m512 scale = _mm512_set1_ps(factor);
  const __m512i offset = _mm512_set1_epi32(128);
  __mmask16 good = 0xffff;
  for (int64_t i = 0; i < in; i += 16) {
    const int64_t left = in - i;
    const auto valid = static_cast<__mmask16>(left >= 16 ? 0xffff : (1u << left) - 1);
    const __m512i byte = vnni::bytes(_mm512_maskz_loadu_ps(valid, x + i), scale, offset, good);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), _mm512_cvtepi32_epi8(byte));
  }
  return good == 0xffff;
}

// A column of outputs: its vectors lie side by side, but for the last, which begins so early that
// it ends with the row, or has a mask where a row is shorter than one vector.
struct RowColumn {
  int64_t first, last;
  __mmask16 valid;
};

template <int kRows, int kVectors>
MASE_VNNI __attribute__((noinline)) void rows_tile(const IntegerRows& s, const uint32_t* x,
                                                   const uint32_t* w, float factor,
                                                   const float* bias, float* y,
                                                   const RowColumn& column, const __m512i* start) {
  const int64_t words = s.words();
  int64_t position[kVectors];
  for (int v = 0; v < kVectors; ++v) position[v] = column.first + v * 16;
  position[kVectors - 1] = column.last;
  __m512i sum[kRows][kVectors];
  HWY_UNROLL(8)
  for (int r = 0; r < kRows; ++r) {
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v) sum[r][v] = start[v];
  }
  for (int64_t k = 0; k < words; ++k) {
    const uint32_t* row = w + k * s.out;
    __m512i value[kVectors];
    HWY_UNROLL(8)
    for (int v = 0; v < kVectors; ++v)
      value[v] = _mm512_maskz_loadu_epi32(column.valid, row + position[v]);
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      const __m512i sample = _mm512_set1_epi32(static_cast<int>(x[r * words + k]));
      HWY_UNROLL(8)
      for (int v = 0; v < kVectors; ++v) vnni::multiply_add(sum[r][v], sample, value[v]);
    }
  }
  const __m512 unit = _mm512_set1_ps(factor);
  HWY_UNROLL(8)
  for (int v = 0; v < kVectors; ++v) {
    const __m512 before =
        bias ? _mm512_maskz_loadu_ps(column.valid, bias + position[v]) : _mm512_setzero_ps();
    HWY_UNROLL(8)
    for (int r = 0; r < kRows; ++r) {
      const __m512 result =
          _mm512_add_ps(before, _mm512_mul_ps(_mm512_cvtepi32_ps(sum[r][v]), unit));
      float* to = y + r * s.out + position[v];
      if (column.valid == 0xffff)
        _mm512_storeu_ps(to, result);
      else
        _mm512_mask_storeu_ps(to, column.valid, result);
    }
  }
}

template <int kVectors>
MASE_VNNI void rows_column(const IntegerRows& s, const uint32_t* x, const uint32_t* w, float unit,
                           const float* bias, float* y, const RowColumn& column) {
  __m512i start[kVectors];
  const __m512i offset = _mm512_set1_epi8(static_cast<char>(-128));
  for (int v = 0; v < kVectors; ++v) {
    __m512i sum = _mm512_setzero_si512();
    const int64_t at = v + 1 < kVectors ? column.first + v * 16 : column.last;
    for (int64_t k = 0; k < s.words(); ++k)
      vnni::multiply_add(sum, offset, _mm512_maskz_loadu_epi32(column.valid, w + k * s.out + at));
    start[v] = _mm512_sub_epi32(_mm512_setzero_si512(), sum);
  }
  int64_t bands = (s.rows + 5) / 6;
  for (int64_t r = 0; bands > 0; --bands) {
    const int64_t height = (s.rows - r + bands - 1) / bands;
    const auto run = height == 6   ? rows_tile<6, kVectors>
                     : height == 5 ? rows_tile<5, kVectors>
                     : height == 4 ? rows_tile<4, kVectors>
                     : height == 3 ? rows_tile<3, kVectors>
                     : height == 2 ? rows_tile<2, kVectors>
                                   : rows_tile<1, kVectors>;
    run(s, x + r * s.words(), w, unit, bias, y + r * s.out, column, start);
    r += height;
  }
}

}  // namespace

bool pack_rows(int64_t rows, int64_t in, const float* x, float scale, uint32_t* out) {
  if (!has_integer_dot()) return reference::pack_rows(rows, in, x, scale, out);
  auto* bytes = reinterpret_cast<uint8_t*>(out);
  if (in % quad == 0) return pack_row_bytes(rows * in, x, scale, bytes);
  const int64_t step = (in + quad - 1) / quad * quad;
  for (int64_t r = 0; r < rows; ++r)
    if (!pack_row_bytes(in, x + r * in, scale, bytes + r * step)) return false;
  return true;
}

void integer_rows(const IntegerRows& s, const uint32_t* x, const uint32_t* w, float unit,
                  const float* bias, float* y) {
  if (!has_integer_dot()) return reference::integer_rows(s, x, w, unit, bias, y);
  for (int64_t first = 0; first < s.out; first += 64) {
    const int64_t left = std::min<int64_t>(64, s.out - first), vectors = (left + 15) / 16;
    RowColumn column{first, first + (vectors - 1) * 16, 0xffff};
    if (s.out >= 16)
      column.last = std::min(column.last, s.out - 16);
    else
      column.valid = static_cast<__mmask16>((1u << s.out) - 1);
    const auto run = vectors == 4   ? rows_column<4>
                     : vectors == 3 ? rows_column<3>
                     : vectors == 2 ? rows_column<2>
                                    : rows_column<1>;
    run(s, x, w, unit, bias, y, column);
  }
}

#else

bool pack_rows(int64_t rows, int64_t in, const float* x, float scale, uint32_t* out) {
  return reference::pack_rows(rows, in, x, scale, out);
}
void integer_rows(const IntegerRows& s, const uint32_t* x, const uint32_t* w, float unit,
                  const float* bias, float* y) {
  reference::integer_rows(s, x, w, unit, bias, y);
}

#endif

}  // namespace mase::kernels
