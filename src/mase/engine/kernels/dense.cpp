// SPDX-License-Identifier: Apache-2.0
// Linear layers with the batch along the lanes. Forward and input gradient: register tiles of 6
// outputs by 2 vectors of samples, one weight broadcast per multiply-add pair, a block of columns
// of x staying in L1. Weight gradient: tiles of 3 x 4 dot products along the batch, summed across
// lanes four at a time. Sums have one fixed order per element, whatever the number of threads.
#include "mase/engine/kernels/kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/dense.cpp"
#define HWY_DISABLED_TARGETS (HWY_AVX3_DL | HWY_SSSE3)
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using D = hn::ScalableTag<float>;
using V = hn::Vec<D>;

// A value used by several multiply-adds is to be loaded once: GCC would read it from memory in
// each.
HWY_INLINE V Loaded(const float* from) {
  V v = hn::Load(D(), from);
#if HWY_ARCH_X86 && HWY_TARGET != HWY_SCALAR && HWY_TARGET != HWY_EMU128
  asm("" : "+x"(v.raw));
#endif
  return v;
}

// The tiles are not inlined: a constant kept in a register around them would push one of the sums
// to memory.
template <int kRows, int kVectors, bool kRelu>
HWY_NOINLINE void Tile(const LinearShape& s, const float* HWY_RESTRICT w,
                       const float* HWY_RESTRICT bias, const float* HWY_RESTRICT x,
                       float* HWY_RESTRICT y, bool accumulate) {
  const D d;
  const size_t lanes = hn::Lanes(d);
  V sum[kRows][kVectors];
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v)
      sum[r][v] = accumulate ? hn::Load(d, y + r * s.stride + v * static_cast<int64_t>(lanes))
                             : hn::Set(d, bias ? bias[r] : 0.0f);
  const float* weights[kRows];
  for (int r = 0; r < kRows; ++r) weights[r] = w + r * s.out_step;
  const float* column = x;
  for (int64_t k = 0; k < s.in; ++k, column += s.stride) {
    V value[kVectors];
    for (int v = 0; v < kVectors; ++v) value[v] = Loaded(column + v * lanes);
    for (int r = 0; r < kRows; ++r) {
      const V weight = hn::Set(d, weights[r][k * s.in_step]);
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(weight, value[v], sum[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r)
    for (int v = 0; v < kVectors; ++v) {
      V result = sum[r][v];
      if (kRelu) result = hn::Max(hn::Zero(d), result);  // in this order NaN stays
      hn::Store(result, d, y + r * s.stride + v * static_cast<int64_t>(lanes));
    }
}

template <int kRows, bool kRelu>
HWY_INLINE void Columns(const LinearShape& s, const float* w, const float* bias, const float* x,
                        float* y, int64_t count, bool accumulate) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(D()));
  int64_t c = 0;
  for (; c + 2 * lanes <= count; c += 2 * lanes)
    Tile<kRows, 2, kRelu>(s, w, bias, x + c, y + c, accumulate);
  for (; c < count; c += lanes) Tile<kRows, 1, kRelu>(s, w, bias, x + c, y + c, accumulate);
}

template <bool kRelu>
HWY_INLINE void Outputs(const LinearShape& s, const float* w, const float* bias, const float* x,
                        float* y, int64_t begin, int64_t count, bool accumulate) {
  for (int64_t o = 0; o < s.out; o += 6) {
    const float* rows = w + o * s.out_step;
    const float* own = bias ? bias + o : nullptr;
    float* to = y + o * s.stride + begin;
    switch (s.out - o) {
      case 1:
        Columns<1, kRelu>(s, rows, own, x + begin, to, count, accumulate);
        break;
      case 2:
        Columns<2, kRelu>(s, rows, own, x + begin, to, count, accumulate);
        break;
      case 3:
        Columns<3, kRelu>(s, rows, own, x + begin, to, count, accumulate);
        break;
      case 4:
        Columns<4, kRelu>(s, rows, own, x + begin, to, count, accumulate);
        break;
      case 5:
        Columns<5, kRelu>(s, rows, own, x + begin, to, count, accumulate);
        break;
      default:
        Columns<6, kRelu>(s, rows, own, x + begin, to, count, accumulate);
    }
  }
}

// Columns [begin, end) of y.
void LinearBlock(const LinearShape& s, const float* w, const float* bias, const float* x, float* y,
                 int64_t begin, int64_t end, bool relu, bool accumulate) {
  if (relu)
    Outputs<true>(s, w, bias, x, y, begin, end - begin, accumulate);
  else
    Outputs<false>(s, w, bias, x, y, begin, end - begin, accumulate);
}

// The lane sums of four vectors, as four floats.
HWY_INLINE void SumFour(V a, V b, V c, V e, float* HWY_RESTRICT out) {
  const D d;
#if HWY_TARGET == HWY_SCALAR || HWY_TARGET == HWY_EMU128
  out[0] = hn::GetLane(hn::SumOfLanes(d, a));
  out[1] = hn::GetLane(hn::SumOfLanes(d, b));
  out[2] = hn::GetLane(hn::SumOfLanes(d, c));
  out[3] = hn::GetLane(hn::SumOfLanes(d, e));
#else
  const hn::Repartition<double, D> d64;
  const V ab = hn::Add(hn::InterleaveLower(d, a, b), hn::InterleaveUpper(d, a, b));
  const V ce = hn::Add(hn::InterleaveLower(d, c, e), hn::InterleaveUpper(d, c, e));
  const auto ab64 = hn::BitCast(d64, ab), ce64 = hn::BitCast(d64, ce);
  const V all = hn::Add(hn::BitCast(d, hn::InterleaveLower(d64, ab64, ce64)),
                        hn::BitCast(d, hn::InterleaveUpper(d64, ab64, ce64)));
#if HWY_MAX_BYTES == 32
  const hn::Half<D> half;
  hn::StoreU(hn::Add(hn::LowerHalf(half, all), hn::UpperHalf(half, all)), half, out);
#else
  HWY_ALIGN float blocks[64];
  hn::Store(all, d, blocks);
  const hn::FixedTag<float, 4> d4;
  auto total = hn::Load(d4, blocks);
  for (size_t i = 4; i < hn::Lanes(d); i += 4) total = hn::Add(total, hn::Load(d4, blocks + i));
  hn::StoreU(total, d4, out);
#endif
#endif
}

template <int kRows>
HWY_NOINLINE void DotTile(const LinearShape& s, const float* HWY_RESTRICT g,
                          const float* HWY_RESTRICT x, int64_t columns, float* HWY_RESTRICT dw,
                          bool accumulate) {
  const D d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  V sum[kRows][4];
  for (auto& row : sum)
    for (V& v : row) v = hn::Zero(d);
  const float* in[4];  // the last tile repeats a row and drops the result
  for (int64_t i = 0; i < 4; ++i) in[i] = x + (i < columns ? i : columns - 1) * s.stride;
  int64_t b = 0;
  for (; b + lanes <= s.n; b += lanes) {
    V up[kRows];  // with the sums and one x at a time: all sixteen registers
    for (int r = 0; r < kRows; ++r) up[r] = Loaded(g + r * s.stride + b);
    for (int i = 0; i < 4; ++i) {
      const V value = Loaded(in[i] + b);
      for (int r = 0; r < kRows; ++r) sum[r][i] = hn::MulAdd(up[r], value, sum[r][i]);
    }
  }
  if (b < s.n) {  // the padding may hold anything, NaN included
    const auto valid = hn::FirstN(d, static_cast<size_t>(s.n - b));
    V last[4];
    for (int i = 0; i < 4; ++i) last[i] = hn::IfThenElseZero(valid, hn::Load(d, in[i] + b));
    for (int r = 0; r < kRows; ++r) {
      const V up = hn::IfThenElseZero(valid, hn::Load(d, g + r * s.stride + b));
      for (int i = 0; i < 4; ++i) sum[r][i] = hn::MulAdd(up, last[i], sum[r][i]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    if (columns == 4 && s.in_step == 1 && !accumulate) {
      SumFour(sum[r][0], sum[r][1], sum[r][2], sum[r][3], dw + r * s.out_step);
      continue;
    }
    float totals[4];
    SumFour(sum[r][0], sum[r][1], sum[r][2], sum[r][3], totals);
    for (int64_t i = 0; i < columns; ++i) {
      float& target = dw[r * s.out_step + i * s.in_step];
      target = accumulate ? target + totals[i] : totals[i];
    }
  }
}

// Rows [begin, end) of dw.
void GradientBlock(const LinearShape& s, const float* g, const float* x, float* dw, int64_t begin,
                   int64_t end, bool accumulate) {
  for (int64_t o = begin; o < end; o += 3)
    for (int64_t i = 0; i < s.in; i += 4) {
      const int64_t columns = s.in - i < 4 ? s.in - i : 4;
      const float* rows = g + o * s.stride;
      const float* in = x + i * s.stride;
      float* to = dw + o * s.out_step + i * s.in_step;
      if (end - o >= 3)
        DotTile<3>(s, rows, in, columns, to, accumulate);
      else if (end - o == 2)
        DotTile<2>(s, rows, in, columns, to, accumulate);
      else
        DotTile<1>(s, rows, in, columns, to, accumulate);
    }
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>

namespace mase::kernels {
namespace {

HWY_EXPORT(LinearBlock);
HWY_EXPORT(GradientBlock);

// Below this many multiply-adds a second thread costs more than it brings.
constexpr int64_t parallel_work = int64_t{1} << 20;
// Columns of x that stay in L1 while all outputs are computed.
constexpr int64_t column_block = 64;

}  // namespace

void linear(const LinearShape& s, const float* w, const float* bias, const float* x, float* y,
            bool relu, bool accumulate) {
  if (s.stride % 16 != 0) return reference::linear(s, w, bias, x, y, relu, accumulate);
  const auto block = HWY_DYNAMIC_DISPATCH(LinearBlock);
  const int64_t blocks = (s.n + column_block - 1) / column_block;
  const bool parallel = s.threads > 1 && s.out * s.in * s.n >= parallel_work;
#pragma omp parallel for num_threads(s.threads) if (parallel) schedule(static)
  for (int64_t i = 0; i < blocks; ++i)
    block(s, w, bias, x, y, i * column_block, std::min(s.n, (i + 1) * column_block), relu,
          accumulate);
}

void linear_gradient(const LinearShape& s, const float* g, const float* x, float* dw, float* db,
                     bool accumulate) {
  if (s.stride % 16 != 0) return reference::linear_gradient(s, g, x, dw, db, accumulate);
  const auto block = HWY_DYNAMIC_DISPATCH(GradientBlock);
  constexpr int64_t rows = 12;
  const int64_t blocks = (s.out + rows - 1) / rows;
  const bool parallel = s.threads > 1 && s.out * s.in * s.n >= parallel_work;
#pragma omp parallel for num_threads(s.threads) if (parallel) schedule(static)
  for (int64_t i = 0; i < blocks; ++i)
    block(s, g, x, dw, i * rows, std::min(s.out, (i + 1) * rows), accumulate);
  if (!db) return;
  for (int64_t o = 0; o < s.out; ++o) {
    const auto total = static_cast<float>(sum(g + o * s.stride, s.n));
    db[o] = accumulate ? db[o] + total : total;
  }
}

}  // namespace mase::kernels
#endif
