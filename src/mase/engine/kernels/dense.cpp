// SPDX-License-Identifier: Apache-2.0
// Linear layers with the batch along the lanes. Forward and input gradient: bands of 4 or 5 outputs
// by 2 vectors of samples kept in registers, one weight broadcast per pair of multiply-adds, a
// block of columns of x staying in L1. Weight gradient: 3 x 4 dot products along the batch, 6 x 4
// of long rows with 32 registers, summed across lanes four at a time. A single sample would leave
// all lanes but one empty: its outputs are dot products along the weights. Sums have one fixed
// order per element, whatever the number of threads.
#include "mase/engine/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/dense.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
#include "mase/engine/kernels/lane_sums-inl.h"
#include "mase/engine/kernels/masked-inl.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// Inputs summed up in one go.
constexpr int64_t kLongestSum = 192;

// A value used by several multiply-adds is to be loaded once: GCC would read it from memory in
// each.
HWY_INLINE V Loaded(const float* from) {
  V v = hn::Load(D(), from);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  asm("" : "+v"(v.raw));
#endif
  return v;
}

// kRows outputs for `count` samples, kVectors vectors of them at a time.
template <int kRows, int kVectors, bool kRelu>
HWY_NOINLINE void Band(const LinearShape& s, const float* w, const float* bias,
                       const float* HWY_RESTRICT x, float* HWY_RESTRICT y, int64_t count,
                       bool accumulate) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t stride = s.stride, in_step = s.in_step, in = s.in;
  const float* weights[kRows];
  for (int r = 0; r < kRows; ++r) weights[r] = w + r * s.out_step;
  for (int64_t first = 0; first + kVectors * lanes <= count; first += kVectors * lanes) {
    const float* column = x + first;
    float* to = y + first;
    V sum[kRows][kVectors];
    if (accumulate) {
      for (int r = 0; r < kRows; ++r)
        for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Load(d, to + r * stride + v * lanes);
    } else if (bias) {
      for (int r = 0; r < kRows; ++r)
        for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::Set(d, bias[r]);
    } else {
      for (auto& row : sum)
        for (V& v : row) v = hn::Zero(d);
    }
    int64_t at = 0;
    const auto add = [&]() HWY_ATTR {
      V value[kVectors];
      for (int v = 0; v < kVectors; ++v) value[v] = Loaded(column + v * lanes);
      for (int r = 0; r < kRows; ++r) {
        const V weight = hn::Set(d, weights[r][at]);
        for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(weight, value[v], sum[r][v]);
      }
      column += stride;
      at += in_step;
    };
    if constexpr (kRelu) {  // inference: a tenth faster for sums of 8 terms
      HWY_UNROLL(2)
      for (int64_t k = in; k > 0; --k) add();
    } else {
      for (int64_t k = in; k > 0; --k) add();
    }
    for (int r = 0; r < kRows; ++r)
      for (int v = 0; v < kVectors; ++v) {
        V result = sum[r][v];
        if (kRelu) result = hn::Max(hn::Zero(d), result);  // in this order NaN stays
        hn::Store(result, d, to + r * stride + v * lanes);
      }
  }
}

template <int kRows, bool kRelu>
HWY_INLINE void Columns(const LinearShape& s, const float* w, const float* bias, const float* x,
                        float* y, int64_t count, bool accumulate) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  const int64_t pairs = count / (2 * lanes) * (2 * lanes);
  if (pairs > 0) Band<kRows, 2, kRelu>(s, w, bias, x, y, pairs, accumulate);
  // What is left, padding included.
  const int64_t rest = (count - pairs + lanes - 1) / lanes * lanes;
  if (rest > 0) Band<kRows, 1, kRelu>(s, w, bias, x + pairs, y + pairs, rest, accumulate);
}

// How many bands `out` outputs are cut into. Bands of four or five outputs, all about as tall: the
// eight or ten sums in flight cover the latency of the multiply-adds, and the rest of the registers
// are free for operands. A thin band at the end would wait for its own sums.
HWY_INLINE int64_t BandCount(int64_t out) { return out < 4 ? 1 : out == 7 ? 2 : out / 4; }

template <bool kRelu>
void Outputs(const LinearShape& s, const float* w, const float* bias, const float* x, float* y,
             int64_t begin, int64_t count, bool accumulate) {
  for (int64_t o = 0, left = BandCount(s.out); left > 0; --left) {
    const int64_t height = (s.out - o + left - 1) / left;
    const float* rows = w + o * s.out_step;
    const float* own = bias ? bias + o : nullptr;
    float* to = y + o * s.stride + begin;
    WithHeight<6>(height, [&]<int kRows>() HWY_ATTR {
      Columns<kRows, kRelu>(s, rows, own, x + begin, to, count, accumulate);
    });
    o += height;
  }
}

// Columns [begin, end) of y. Long sums are cut into pieces whose part of x stays in L1.
void LinearBlock(const LinearShape& s, const float* w, const float* bias, const float* x, float* y,
                 int64_t begin, int64_t end, bool relu, bool accumulate) {
  LinearShape part = s;
  for (int64_t k = 0; k == 0 || k < s.in; k += kLongestSum) {
    part.in = s.in - k < kLongestSum ? s.in - k : kLongestSum;
    const bool last = k + part.in >= s.in, more = accumulate || k > 0;
    const auto outputs = relu && last ? Outputs<true> : Outputs<false>;
    outputs(part, w + k * s.in_step, bias, x + k * s.stride, y, begin, end - begin, more);
  }
}

// kRows rows of dw: dot products along the batch, four columns at a time. With three rows of g and
// one row of x at a time the twelve sums take all sixteen registers of AVX2.
template <int kRows>
HWY_NOINLINE void DotBand(const LinearShape& s, const float* HWY_RESTRICT g, const float* x,
                          float* HWY_RESTRICT dw, bool accumulate) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t stride = s.stride, whole = s.n / lanes * lanes;
  for (int64_t i = 0; i < s.in; i += 4) {
    const int64_t columns = s.in - i < 4 ? s.in - i : 4;
    const float* in[4];  // the last tile repeats a row and drops the result
    for (int64_t c = 0; c < 4; ++c) in[c] = x + (i + (c < columns ? c : columns - 1)) * stride;
    V sum[kRows][4];
    for (auto& row : sum)
      for (V& v : row) v = hn::Zero(d);
    for (int64_t b = 0; b < whole; b += lanes) {
      V up[kRows];
      for (int r = 0; r < kRows; ++r) up[r] = Loaded(g + r * stride + b);
      for (int c = 0; c < 4; ++c) {
        const V value = Loaded(in[c] + b);
        for (int r = 0; r < kRows; ++r) sum[r][c] = hn::MulAdd(up[r], value, sum[r][c]);
      }
    }
    if (whole < s.n) {  // the padding may hold anything, NaN included
      const auto valid = hn::FirstN(d, static_cast<size_t>(s.n - whole));
      V last[4];
      for (int c = 0; c < 4; ++c) last[c] = hn::IfThenElseZero(valid, hn::Load(d, in[c] + whole));
      HWY_UNROLL(6)
      for (int r = 0; r < kRows; ++r) {
        const V up = hn::IfThenElseZero(valid, hn::Load(d, g + r * stride + whole));
        for (int c = 0; c < 4; ++c) sum[r][c] = hn::MulAdd(up, last[c], sum[r][c]);
      }
    }
    // Sums that are picked by a number that is not known here would not stay in registers.
    if (columns == 4 && s.in_step == 1 && !accumulate) {
      HWY_UNROLL(6)
      for (int r = 0; r < kRows; ++r)
        SumFour(d, sum[r][0], sum[r][1], sum[r][2], sum[r][3], dw + r * s.out_step + i);
      continue;
    }
    float totals[kRows][4];
    HWY_UNROLL(6)
    for (int r = 0; r < kRows; ++r)
      SumFour(d, sum[r][0], sum[r][1], sum[r][2], sum[r][3], totals[r]);
    for (int r = 0; r < kRows; ++r) {
      float* to = dw + r * s.out_step + i * s.in_step;
      for (int64_t c = 0; c < columns; ++c)
        to[c * s.in_step] = accumulate ? to[c * s.in_step] + totals[r][c] : totals[r][c];
    }
  }
}

// How tall the bands of dw are. Twelve sums are enough in flight; more of them share what is
// loaded, but what adds up their lanes is not hidden behind the few multiply-adds of short rows.
HWY_INLINE int64_t DotRows(int64_t n) {
  constexpr int64_t long_rows = 512;
  return HWY_MAX_BYTES >= 64 && n >= long_rows ? 6 : 3;
}

// Rows [begin, end) of dw, in bands all about as tall.
void GradientBlock(const LinearShape& s, const float* g, const float* x, float* dw, int64_t begin,
                   int64_t end, bool accumulate) {
  constexpr int kTallest = HWY_MAX_BYTES >= 64 ? 6 : 3;
  const int64_t most = DotRows(s.n);
  for (int64_t o = begin, left = (end - begin + most - 1) / most; left > 0; --left) {
    const int64_t height = (end - o + left - 1) / left;
    const float* rows = g + o * s.stride;
    float* to = dw + o * s.out_step;
    WithHeight<kTallest>(height,
                         [&]<int kRows>() HWY_ATTR { DotBand<kRows>(s, rows, x, to, accumulate); });
    o += height;
  }
}

// Outputs [begin, end) of one sample, eight at a time; `x` are `count` of its values, followed by
// zeros up to a whole vector. y: where the sums so far are, s.stride apart.
void SampleBlock(const LinearShape& s, const float* w, const float* HWY_RESTRICT x, int64_t count,
                 float* HWY_RESTRICT y, int64_t begin, int64_t end, bool relu) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const int64_t whole = count / lanes * lanes;
  const auto valid = hn::FirstN(d, static_cast<size_t>(count - whole));
  for (int64_t o = begin; o < end; o += 8) {
    const int64_t rows = end - o < 8 ? end - o : 8;
    const float* from[8];  // the last tile repeats a row and drops the result
    for (int64_t r = 0; r < 8; ++r) from[r] = w + (o + (r < rows ? r : rows - 1)) * s.out_step;
    V sum[8];
    for (V& v : sum) v = hn::Zero(d);
    for (int64_t k = 0; k < whole; k += lanes) {
      const V value = Loaded(x + k);
      for (int r = 0; r < 8; ++r) sum[r] = hn::MulAdd(hn::LoadU(d, from[r] + k), value, sum[r]);
    }
    if (whole < count) {
      const V value = hn::Load(d, x + whole);
      for (int r = 0; r < 8; ++r)
        sum[r] = hn::MulAdd(MaskedRead(valid, d, from[r] + whole), value, sum[r]);
    }
    float totals[8];
    SumFour(d, sum[0], sum[1], sum[2], sum[3], totals);
    SumFour(d, sum[4], sum[5], sum[6], sum[7], totals + 4);
    for (int64_t r = 0; r < rows; ++r) {
      float& to = y[(o + r) * s.stride];
      const float total = to + totals[r];
      to = relu && total < 0 ? 0.0f : total;
    }
  }
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

#include "mase/engine/kernels/parallel.h"
#include "mase/engine/kernels/shifted.h"

namespace mase::kernels {
namespace {

HWY_EXPORT(LinearBlock);
HWY_EXPORT(GradientBlock);
HWY_EXPORT(SampleBlock);

// Below this many multiply-adds a second thread costs more than it brings.
constexpr int64_t parallel_work = int64_t{1} << 20;
// Columns of x that stay in L1 while all outputs are computed: about 24 kB.
int64_t column_block(int64_t in) {
  return std::max<int64_t>(32, 6144 / std::max<int64_t>(in, 1) / 16 * 16);
}

// Layers whose weights do not stay in L1 take the tall tiles of the convolutions, if they have
// lanes enough for them.
bool is_large(const LinearShape& s) { return s.out * s.in >= int64_t{1} << 15 && s.n >= 128; }

// Calls body(shape, first input, whether it is the last) for pieces of the inputs.
template <class Body>
void each_large_piece(const LinearShape& s, const Body& body) {
  constexpr int64_t longest = 256;
  int64_t offsets[longest];
  for (int64_t i = 0; i < longest; ++i) offsets[i] = i * s.stride;
  for (int64_t k = 0; k < s.in; k += longest) {
    ShiftedShape shape{};
    shape.out = s.out;
    shape.in = std::min(longest, s.in - k);
    shape.out_step = s.out_step;
    shape.in_step = s.in_step;
    shape.offsets = offsets;
    shape.y_stride = s.stride;
    shape.n = s.n;
    shape.threads = s.threads;
    body(shape, k, k + longest >= s.in);
  }
}

// One sample, its values side by side in pieces that stay in L1.
void sample_linear(const LinearShape& s, const float* w, const float* bias, const float* x,
                   float* y, bool relu, bool accumulate) {
  const auto block = HWY_DYNAMIC_DISPATCH(SampleBlock);
  constexpr int64_t longest = 1024, rows = 64;
  alignas(64) float values[longest];
  const int64_t bands = (s.out + rows - 1) / rows;
  const bool parallel = s.threads > 1 && s.out * s.in >= parallel_work;
  for (int64_t o = 0; !accumulate && o < s.out; ++o) y[o * s.stride] = bias ? bias[o] : 0.0f;
  for (int64_t k = 0; k < s.in; k += longest) {
    const int64_t count = std::min(longest, s.in - k);
    for (int64_t i = 0; i < count; ++i) values[i] = x[(k + i) * s.stride];
    std::fill(values + count, values + std::min(longest, (count + 15) / 16 * 16), 0.0f);
    for_each_piece(bands, parallel ? s.threads : 1, [&](int64_t i) {
      block(s, w + k, values, count, y, i * rows, std::min(s.out, (i + 1) * rows),
            relu && k + count >= s.in);
    });
  }
}

}  // namespace

void linear(const LinearShape& s, const float* w, const float* bias, const float* x, float* y,
            bool relu, bool accumulate) {
  // What can_gather_linear takes has the same bits either way.
  if (s.n == 1 && s.in_step == 1 && s.in >= 16 && !can_gather_linear(s.out, s.in))
    return sample_linear(s, w, bias, x, y, relu, accumulate);
  if (s.stride % 16 != 0) return reference::linear(s, w, bias, x, y, relu, accumulate);
  if (is_large(s)) {
    each_large_piece(s, [&](const ShiftedShape& shape, int64_t k, bool last) {
      shifted_linear(shape, w + k * s.in_step, bias, x + k * s.stride, y,
                     Finish::relu(relu && last), accumulate || k > 0);
    });
    return;
  }
  const auto block = HWY_DYNAMIC_DISPATCH(LinearBlock);
  const int64_t size = column_block(s.in), blocks = (s.n + size - 1) / size;
  const bool parallel = s.threads > 1 && s.out * s.in * s.n >= parallel_work;
  for_each_piece(blocks, parallel ? s.threads : 1, [&](int64_t i) {
    block(s, w, bias, x, y, i * size, std::min(s.n, (i + 1) * size), relu, accumulate);
  });
}

void linear_gradient(const LinearShape& s, const float* g, const float* x, float* dw, float* db,
                     bool accumulate) {
  if (s.stride % 16 != 0) return reference::linear_gradient(s, g, x, dw, db, accumulate);
  if (is_large(s)) {
    each_large_piece(s, [&](const ShiftedShape& shape, int64_t k, bool) {
      shifted_gradient(shape, g, x + k * s.stride, dw + k * s.in_step, accumulate);
    });
  } else {
    const auto block = HWY_DYNAMIC_DISPATCH(GradientBlock);
    constexpr int64_t rows = 12;
    const int64_t blocks = (s.out + rows - 1) / rows;
    const bool parallel = s.threads > 1 && s.out * s.in * s.n >= parallel_work;
    for_each_piece(blocks, parallel ? s.threads : 1, [&](int64_t i) {
      block(s, g, x, dw, i * rows, std::min(s.out, (i + 1) * rows), accumulate);
    });
  }
  if (!db) return;
  for (int64_t o = 0; o < s.out; ++o) {
    const auto total = static_cast<float>(sum(g + o * s.stride, s.n));
    db[o] = accumulate ? db[o] + total : total;
  }
}

}  // namespace mase::kernels
#endif
