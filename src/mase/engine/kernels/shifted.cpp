// SPDX-License-Identifier: Apache-2.0
// Tiles of outputs by vectors of lanes kept in registers, one weight broadcast per row and term:
// 6 x 4 with 32 registers, 6 x 2 with 16. Long sums are cut into pieces, for which weights and rows
// stay in L2. Gradients: tiles of dot products along the lanes, summed over all segments in
// registers. Sums have one fixed order per element, whatever the number of threads.
#include "mase/engine/kernels/shifted.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/shifted.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "mase/engine/kernels/lane_sums-inl.h"
#include "mase/engine/kernels/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace shifted {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

#if HWY_MAX_BYTES >= 64
constexpr int kWide = 4, kDotRows = 6;
#else
constexpr int kWide = 2, kDotRows = 3;
#endif
constexpr int kTall = 6;

// Loaded once, although several multiply-adds use it: GCC would read it from memory in each.
HWY_INLINE V Held(V v) {
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  asm("" : "+x"(v.raw));
#endif
  return v;
}

// Where the vectors of a tile are: side by side, but for the last, which may begin before the one
// before it ends (its first lanes are then computed twice, alike), and of which `rest` lanes count.
struct Place {
  const float* start;
  int64_t last, rest;
};

// kRows outputs for kVectors vectors of lanes; kMasked: one vector of which not all lanes count.
template <int kRows, int kVectors, bool kMasked>
HWY_NOINLINE void Tile(const ShiftedShape& s, const float* w, const float* bias,
                       const float* HWY_RESTRICT x, float* HWY_RESTRICT y, const Place& place,
                       const Finish& finish, bool accumulate) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto mask = hn::FirstN(d, static_cast<size_t>(kMasked ? place.rest : lanes));
  int64_t position[kVectors];
  for (int v = 0; v < kVectors; ++v) position[v] = v * lanes;
  position[kVectors - 1] = place.last;
  const float* weights[kRows];
  for (int r = 0; r < kRows; ++r) weights[r] = w + r * s.out_step;
  V sum[kRows][kVectors];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) {
      const float* row = accumulate ? y + r * s.y_stride : bias ? nullptr : place.start;
      if (row)
        sum[r][v] = kMasked ? MaskedRead(mask, d, row) : hn::LoadU(d, row + position[v]);
      else
        sum[r][v] = bias ? hn::Set(d, bias[r]) : hn::Zero(d);
    }
  const int64_t in_step = s.in_step;
  int64_t at = 0;
  for (int64_t k = 0; k < s.in; ++k, at += in_step) {
    const float* row = x + s.offsets[k];
    V value[kVectors];
    for (int v = 0; v < kVectors; ++v)
      value[v] = Held(kMasked ? MaskedRead(mask, d, row) : hn::LoadU(d, row + position[v]));
    for (int r = 0; r < kRows; ++r) {
      const V weight = hn::Set(d, weights[r][at]);
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(weight, value[v], sum[r][v]);
    }
  }
  const V low = hn::Set(d, finish.low), high = hn::Set(d, finish.high);
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) {
      V result = sum[r][v];
      if (finish.add) {
        const float* add = finish.add + r * s.y_stride + position[v];
        result = hn::Add(result, kMasked ? MaskedRead(mask, d, add) : hn::LoadU(d, add));
      }
      result = hn::Min(high, hn::Max(low, result));  // in this order NaN stays
      float* to = y + r * s.y_stride + position[v];
      if (kMasked)
        hn::BlendedStore(result, mask, d, to);
      else
        hn::StoreU(result, d, to);
    }
}

template <int kVectors, bool kMasked>
HWY_INLINE void Column(const ShiftedShape& s, const float* w, const float* bias, const float* x,
                       float* y, const Place& place, const Finish& finish, bool accumulate) {
  // Bands of up to six outputs, all about as tall.
  int64_t bands = (s.out + kTall - 1) / kTall;
  for (int64_t o = 0; bands > 0; --bands) {
    const int64_t height = (s.out - o + bands - 1) / bands;
    const float* rows = w + o * s.out_step;
    const float* own = bias ? bias + o : nullptr;
    float* to = y + o * s.y_stride;
    const Finish last = finish.at(o * s.y_stride);
    WithHeight<kTall>(height, [&]<int kRows>() HWY_ATTR {
      Tile<kRows, kVectors, kMasked>(s, rows, own, x, to, place, last, accumulate);
    });
    o += height;
  }
}

// The vectors that are left of a segment, at most kWide, as one column.
template <int kVectors = 1>
HWY_INLINE void LastColumn(int64_t vectors, const ShiftedShape& s, const float* w,
                           const float* bias, const float* x, float* y, const Place& place,
                           const Finish& finish, bool accumulate) {
  if constexpr (kVectors <= kWide) {
    if (vectors == kVectors)
      Column<kVectors, false>(s, w, bias, x, y, place, finish, accumulate);
    else
      LastColumn<kVectors + 1>(vectors, s, w, bias, x, y, place, finish, accumulate);
  }
}

// One segment.
void LinearSegment(const ShiftedShape& s, const float* w, const float* bias, const float* x,
                   float* y, const Finish& finish, bool accumulate) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  const auto start = [&s](int64_t first) { return s.start ? s.start + first : nullptr; };
  int64_t first = 0;
  if (s.out == 1)  // a single row has too few sums in flight for one narrow tile
    for (; first + 8 * lanes <= s.n; first += 8 * lanes)
      Tile<1, 8, false>(s, w, bias, x + first, y + first, {start(first), 7 * lanes, lanes},
                        finish.at(first), accumulate);
  for (; first + kWide * lanes <= s.n; first += kWide * lanes)
    Column<kWide, false>(s, w, bias, x + first, y + first,
                         {start(first), (kWide - 1) * lanes, lanes}, finish.at(first), accumulate);
  // What is added to y may be added once only. Otherwise a last vector that is not full begins
  // earlier: masks cost more than the lanes computed twice.
  const int64_t left = s.n - first, whole = left / lanes;
  const bool overlap = !accumulate && left % lanes > 0 && s.n >= lanes;
  if (const int64_t vectors = whole + (overlap ? 1 : 0); vectors > 0)
    LastColumn(vectors, s, w, bias, x + first, y + first,
               {start(first), overlap ? left - lanes : (vectors - 1) * lanes, lanes},
               finish.at(first), accumulate);
  if (overlap || left % lanes == 0) return;
  first += whole * lanes;
  Column<1, true>(s, w, bias, x + first, y + first, {start(first), 0, s.n - first},
                  finish.at(first), accumulate);
}

// kRows rows of dw, four columns at a time.
template <int kRows>
HWY_NOINLINE void Dots(const ShiftedShape& s, const float* HWY_RESTRICT g, const float* x,
                       float* HWY_RESTRICT dw, bool accumulate) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = s.n / lanes * lanes;
  const auto mask = hn::FirstN(d, static_cast<size_t>(s.n - whole));
  for (int64_t i = 0; i < s.in; i += 4) {
    const int64_t columns = s.in - i < 4 ? s.in - i : 4;
    const float* in[4];  // the last tile repeats a row and drops the result
    for (int64_t c = 0; c < 4; ++c) in[c] = x + s.offsets[i + (c < columns ? c : columns - 1)];
    V sum[kRows][4];
    for (auto& row : sum)
      for (V& v : row) v = hn::Zero(d);
    for (int64_t piece = 0; piece < s.segments; ++piece) {
      const float* ups = g + piece * s.y_step;
      const int64_t shift = piece * s.x_step;
      for (int64_t b = 0; b < whole; b += lanes) {
        V up[kRows];
        for (int r = 0; r < kRows; ++r) up[r] = Held(hn::LoadU(d, ups + r * s.y_stride + b));
        for (int c = 0; c < 4; ++c) {
          const V value = Held(hn::LoadU(d, in[c] + shift + b));
          for (int r = 0; r < kRows; ++r) sum[r][c] = hn::MulAdd(up[r], value, sum[r][c]);
        }
      }
      if (whole < s.n)
        for (int c = 0; c < 4; ++c) {
          const V value = MaskedRead(mask, d, in[c] + shift + whole);
          for (int r = 0; r < kRows; ++r) {
            const V up = MaskedRead(mask, d, ups + r * s.y_stride + whole);
            sum[r][c] = hn::MulAdd(up, value, sum[r][c]);
          }
        }
    }
    for (int r = 0; r < kRows; ++r) {
      float totals[4];
      SumFour(d, sum[r][0], sum[r][1], sum[r][2], sum[r][3], totals);
      float* to = dw + r * s.out_step + i * s.in_step;
      for (int64_t c = 0; c < columns; ++c)
        to[c * s.in_step] = accumulate ? to[c * s.in_step] + totals[c] : totals[c];
    }
  }
}

void DotBand(const ShiftedShape& s, const float* g, const float* x, float* dw, int64_t begin,
             int64_t end, bool accumulate) {
  for (int64_t o = begin, left = (end - begin + kDotRows - 1) / kDotRows; left > 0; --left) {
    const int64_t height = (end - o + left - 1) / left;
    const float* rows = g + o * s.y_stride;
    float* to = dw + o * s.out_step;
    WithHeight<kDotRows>(height,
                         [&]<int kRows>() HWY_ATTR { Dots<kRows>(s, rows, x, to, accumulate); });
    o += height;
  }
}

}  // namespace shifted

void ShiftedSegment(const ShiftedShape& s, const float* w, const float* bias, const float* x,
                    float* y, const Finish& finish, bool accumulate) {
  shifted::LinearSegment(s, w, bias, x, y, finish, accumulate);
}

void FinishRows(const float* x, int64_t x_step, float* y, int64_t y_step, int64_t rows, int64_t n,
                const Finish& finish) {
  using namespace shifted;
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const V low = hn::Set(d, finish.low), high = hn::Set(d, finish.high);
  for (int64_t first = 0; first < n; first += lanes) {
    const auto mask = hn::FirstN(d, static_cast<size_t>(HWY_MIN(lanes, n - first)));
    for (int64_t row = 0; row < rows; ++row) {
      const int64_t to = row * y_step + first;
      V value = MaskedRead(mask, d, x + row * x_step + first);
      if (finish.add) value = hn::Add(value, MaskedRead(mask, d, finish.add + to));
      hn::BlendedStore(hn::Min(high, hn::Max(low, value)), mask, d, y + to);
    }
  }
}

void ShiftedDots(const ShiftedShape& s, const float* g, const float* x, float* dw, int64_t begin,
                 int64_t end, bool accumulate) {
  shifted::DotBand(s, g, x, dw, begin, end, accumulate);
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "mase/engine/kernels/parallel.h"

namespace mase::kernels {
namespace {

HWY_EXPORT(ShiftedSegment);
HWY_EXPORT(ShiftedDots);
HWY_EXPORT(FinishRows);

// Below this many multiply-adds a second thread costs more than it brings.
constexpr int64_t shifted_parallel_work = int64_t{1} << 20;
// Terms summed up in one go: 256 rows of weights of 512 outputs fill half of L2.
constexpr int64_t shifted_longest_sum = 256;
// Outputs of one piece of work, where outputs are shared.
constexpr int64_t shifted_outputs = 48;
// Lanes whose rows stay in cache while all products of a gradient are formed.
constexpr int64_t shifted_gradient_lanes = 2048;

float finished(float sum, const Finish& finish, int64_t at) {
  if (finish.add) sum += finish.add[at];
  return sum < finish.low ? finish.low : sum > finish.high ? finish.high : sum;
}

}  // namespace

namespace reference {

void shifted_linear(const ShiftedShape& s, const float* w, const float* bias, const float* x,
                    float* y, const Finish& finish, bool accumulate) {
  for (int64_t piece = 0; piece < s.segments; ++piece)
    for (int64_t o = 0; o < s.out; ++o)
      for (int64_t l = 0; l < s.n; ++l) {
        float& to = y[o * s.y_stride + piece * s.y_step + l];
        double sum = accumulate ? to : bias ? bias[o] : s.start ? s.start[l] : 0.0f;
        for (int64_t i = 0; i < s.in; ++i)
          sum += static_cast<double>(w[o * s.out_step + i * s.in_step]) *
                 x[s.offsets[i] + piece * s.x_step + l];
        const int64_t at = o * s.y_stride + piece * s.y_step + l;
        to = finished(static_cast<float>(sum), finish, at);
      }
}

void finish_rows(const float* x, int64_t x_step, float* y, int64_t y_step, int64_t rows, int64_t n,
                 const Finish& finish) {
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t l = 0; l < n; ++l)
      y[row * y_step + l] = finished(x[row * x_step + l], finish, row * y_step + l);
}

void shifted_gradient(const ShiftedShape& s, const float* g, const float* x, float* dw,
                      bool accumulate) {
  for (int64_t o = 0; o < s.out; ++o)
    for (int64_t i = 0; i < s.in; ++i) {
      float& to = dw[o * s.out_step + i * s.in_step];
      double sum = accumulate ? to : 0.0f;
      for (int64_t piece = 0; piece < s.segments; ++piece)
        for (int64_t l = 0; l < s.n; ++l)
          sum += static_cast<double>(g[o * s.y_stride + piece * s.y_step + l]) *
                 x[s.offsets[i] + piece * s.x_step + l];
      to = static_cast<float>(sum);
    }
}

}  // namespace reference

void shifted_linear(const ShiftedShape& s, const float* w, const float* bias, const float* x,
                    float* y, const Finish& finish, bool accumulate) {
  const auto run = HWY_DYNAMIC_DISPATCH(ShiftedSegment);
  const bool parallel = s.threads > 1 && s.out * s.in * s.n * s.segments >= shifted_parallel_work;
  // Long segments are cut, so that threads have something to share.
  constexpr int64_t block = 1024;
  const int64_t blocks = std::max<int64_t>(1, (s.n + block - 1) / block);
  // Where there are too few of them, outputs are shared too: whole tiles of them.
  const bool few = parallel && s.segments * blocks < 2 * s.threads;
  const int64_t outputs = few ? shifted_outputs : std::max<int64_t>(1, s.out);
  const int64_t bands = (s.out + outputs - 1) / outputs;
  for (int64_t k = 0; k == 0 || k < s.in; k += shifted_longest_sum) {
    ShiftedShape part = s;
    part.in = std::min(shifted_longest_sum, s.in - k);
    part.offsets = s.offsets + k;
    const bool last = k + part.in >= s.in, more = accumulate || k > 0;
    for_each_piece(s.segments * blocks * bands, parallel ? s.threads : 1, [&](int64_t i) {
      ShiftedShape own = part;
      const int64_t band = i % bands, place = i / bands;
      const int64_t piece = place / blocks, first = place % blocks * block, o = band * outputs;
      own.out = std::min(outputs, s.out - o);
      own.n = std::min(block, s.n - first);
      if (s.start) own.start = s.start + first;
      const int64_t to = o * s.y_stride + piece * s.y_step + first;
      run(own, w + o * s.out_step + k * s.in_step, bias ? bias + o : nullptr,
          x + piece * s.x_step + first, y + to, last ? finish.at(to) : Finish{}, more);
    });
  }
}

void finish_rows(const float* x, int64_t x_step, float* y, int64_t y_step, int64_t rows, int64_t n,
                 const Finish& finish) {
  HWY_DYNAMIC_DISPATCH(FinishRows)(x, x_step, y, y_step, rows, n, finish);
}

void shifted_gradient(const ShiftedShape& s, const float* g, const float* x, float* dw,
                      bool accumulate) {
  const auto run = HWY_DYNAMIC_DISPATCH(ShiftedDots);
  const bool parallel = s.threads > 1 && s.out * s.in * s.n * s.segments >= shifted_parallel_work;
  constexpr int64_t rows = 12;
  const int64_t bands = (s.out + rows - 1) / rows;
  const int64_t together = std::max<int64_t>(1, shifted_gradient_lanes / std::max<int64_t>(1, s.n));
  for (int64_t piece = 0; piece == 0 || piece < s.segments; piece += together)
    for (int64_t first = 0; first == 0 || first < s.n; first += shifted_gradient_lanes) {
      ShiftedShape own = s;
      own.segments = std::min(together, s.segments - piece);
      own.n = std::min(shifted_gradient_lanes, s.n - first);
      const float* ups = g + piece * s.y_step + first;
      const float* values = x + piece * s.x_step + first;
      for_each_piece(bands, parallel ? s.threads : 1, [&](int64_t i) {
        run(own, ups, values, dw, i * rows, std::min(s.out, (i + 1) * rows),
            accumulate || piece > 0 || first > 0);
      });
    }
}

}  // namespace mase::kernels
#endif
