// SPDX-License-Identifier: Apache-2.0
// The result falls into blocks that threads share out. For each, pieces of both operands are laid
// out in the order in which a tile of the result takes them, and a tile is summed up in registers.
#include "mase/engine/kernels/double_products.h"

#include <algorithm>
#include <vector>

#include "mase/engine/kernels/parallel.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/engine/kernels/double_products.cpp"
#include "hwy/aligned_allocator.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace mase::kernels::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;
using DoubleTag = hn::ScalableTag<double>;
using DoubleVector = hn::Vec<DoubleTag>;

#if HWY_ARCH_X86 && HWY_TARGET <= HWY_AVX3
constexpr int kTileRows = 8;  // 24 sums in 32 registers
#else
constexpr int kTileRows = 4;  // 12 in 16
#endif
constexpr int kTileVectors = 3;
constexpr int64_t kInner = 128;  // of one layout: a tile's part of b stays in L1

HWY_NOINLINE void DoubleTile(const double* HWY_RESTRICT a, const double* HWY_RESTRICT b,
                             int64_t inner, double factor, double* HWY_RESTRICT out, int64_t step,
                             bool add) {
  const DoubleTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  DoubleVector sum[kTileRows][kTileVectors];
  for (auto& row : sum)
    for (DoubleVector& v : row) v = hn::Zero(d);
  for (int64_t k = 0; k < inner; ++k) {
    DoubleVector value[kTileVectors];
    for (int v = 0; v < kTileVectors; ++v) value[v] = hn::Load(d, b + v * lanes);
    for (int r = 0; r < kTileRows; ++r) {
      const DoubleVector weight = hn::Set(d, a[r]);
      for (int v = 0; v < kTileVectors; ++v) sum[r][v] = hn::MulAdd(weight, value[v], sum[r][v]);
    }
    a += kTileRows;
    b += kTileVectors * lanes;
  }
  const DoubleVector f = hn::Set(d, factor);
  for (int r = 0; r < kTileRows; ++r)
    for (int v = 0; v < kTileVectors; ++v) {
      double* to = out + r * step + v * lanes;
      DoubleVector result = hn::Mul(f, sum[r][v]);
      if (add) result = hn::Add(hn::LoadU(d, to), result);
      hn::StoreU(result, d, to);
    }
}

// `count` entries from `first` on along one dimension by `inner` along the other, in tiles of
// `height`, zeros beyond the end.
template <class T>
void LayOut(const T* from, int64_t along, int64_t across, int64_t count, int64_t inner,
            int64_t height, double* to) {
  for (int64_t tile = 0; tile < count; tile += height) {
    const int64_t here = std::min(height, count - tile);
    const T* first = from + tile * along;
    for (int64_t k = 0; k < inner; ++k) {
      for (int64_t i = 0; i < here; ++i) to[i] = static_cast<double>(first[i * along + k * across]);
      for (int64_t i = here; i < height; ++i) to[i] = 0;
      to += height;
    }
  }
}

void LayOutOperand(const DoubleOperand& operand, int64_t along, int64_t across, int64_t first,
                   int64_t count, int64_t k, int64_t inner, int64_t height, double* to) {
  const int64_t at = first * along + k * across;
  if (operand.doubles)
    LayOut(operand.doubles + at, along, across, count, inner, height, to);
  else
    LayOut(operand.floats + at, along, across, count, inner, height, to);
}

// Rows [row, row + rows) and columns [column, column + columns) of the result.
void DoubleBlock(const DoubleProduct& p, int64_t row, int64_t rows, int64_t column,
                 int64_t columns) {
  const int64_t width = kTileVectors * static_cast<int64_t>(hn::Lanes(DoubleTag()));
  const int64_t high = (rows + kTileRows - 1) / kTileRows * kTileRows,
                wide = (columns + width - 1) / width * width;
  const auto a = hwy::AllocateAligned<double>(static_cast<size_t>(high * kInner));
  const auto b = hwy::AllocateAligned<double>(static_cast<size_t>(wide * kInner));
  const auto edge = hwy::AllocateAligned<double>(static_cast<size_t>(kTileRows * width));
  for (int64_t k = 0; k == 0 || k < p.inner; k += kInner) {
    const int64_t inner = std::min(kInner, p.inner - k);
    const bool add = p.accumulate || k > 0;
    LayOutOperand(p.a, p.a.row, p.a.column, row, rows, k, inner, kTileRows, a.get());
    LayOutOperand(p.b, p.b.column, p.b.row, column, columns, k, inner, width, b.get());
    for (int64_t j = 0; j < columns; j += width)
      for (int64_t i = 0; i < rows; i += kTileRows) {
        if (p.upper && column + j + width <= row + i) continue;
        double* to = p.out + (row + i) * p.out_row + column + j;
        const double* own_a = a.get() + i * inner;
        const double* own_b = b.get() + j * inner;
        if (i + kTileRows <= rows && j + width <= columns) {
          DoubleTile(own_a, own_b, inner, p.factor, to, p.out_row, add);
          continue;
        }
        DoubleTile(own_a, own_b, inner, p.factor, edge.get(), width, false);
        for (int64_t r = 0; r < std::min<int64_t>(kTileRows, rows - i); ++r)
          for (int64_t c = 0; c < std::min(width, columns - j); ++c) {
            double& slot = to[r * p.out_row + c];
            slot = add ? slot + edge[static_cast<size_t>(r * width + c)]
                       : edge[static_cast<size_t>(r * width + c)];
          }
      }
  }
}

}  // namespace mase::kernels::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::kernels {

namespace reference {
void multiply_doubles(const DoubleProduct& p) {
  const auto at = [](const DoubleOperand& operand, int64_t i, int64_t j) {
    const int64_t place = i * operand.row + j * operand.column;
    return operand.doubles ? operand.doubles[place] : static_cast<double>(operand.floats[place]);
  };
  for (int64_t i = 0; i < p.rows; ++i)
    for (int64_t j = 0; j < p.columns; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < p.inner; ++k) sum += at(p.a, i, k) * at(p.b, k, j);
      double& slot = p.out[i * p.out_row + j];
      slot = (p.accumulate ? slot : 0) + p.factor * sum;
    }
}
}  // namespace reference

HWY_EXPORT(DoubleBlock);

void multiply_doubles(const DoubleProduct& product, int threads) {
  constexpr int64_t most_rows = 192, most_columns = 384;
  struct Part {
    int64_t row, rows, column, columns;
  };
  std::vector<Part> parts;
  for (int64_t i = 0; i < product.rows; i += most_rows)
    for (int64_t j = 0; j < product.columns; j += most_columns) {
      const Part part{i, std::min(most_rows, product.rows - i), j,
                      std::min(most_columns, product.columns - j)};
      if (!product.upper || j + part.columns > i) parts.push_back(part);
    }
  const int64_t count = std::min<int64_t>(std::max(1, threads), static_cast<int64_t>(parts.size()));
  // Dealt out in turn, since parts on the diagonal cost less.
  for_each_piece(count, static_cast<int>(count), [&](int64_t thread) {
    for (size_t i = static_cast<size_t>(thread); i < parts.size(); i += static_cast<size_t>(count))
      HWY_DYNAMIC_DISPATCH(DoubleBlock)
    (product, parts[i].row, parts[i].rows, parts[i].column, parts[i].columns);
  });
}

}  // namespace mase::kernels
#endif
