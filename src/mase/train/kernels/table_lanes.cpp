// SPDX-License-Identifier: Apache-2.0
#include "mase/train/kernels/table_lanes.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mase/train/kernels/table_lanes.cpp"
#include <hwy/foreach_target.h>
// foreach_target first.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace mase::table_lanes::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Vectors no longer than the padding.
using Lanes = hn::CappedTag<float, 16>;
using Eight = hn::CappedTag<float, 8>;

template <class D>
HWY_INLINE void add_entries_by(D d, const TableExtent& shape, const float* tables,
                               const float* start, const uint8_t* codes, int64_t rows, float* out) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t row = 0; row < rows; ++row) {
    const uint8_t* const code = codes + row * shape.inputs;
    for (int64_t at = 0; at < shape.pad; at += lanes) {
      auto sum = hn::LoadU(d, start + at);
      for (const int i : shape.live)
        sum = hn::Add(sum, hn::LoadU(d, tables + (i * shape.codes + code[i]) * shape.pad + at));
      hn::StoreU(sum, d, out + row * shape.pad + at);
    }
  }
}

void AddEntries(const TableExtent& shape, const float* tables, const float* start,
                const uint8_t* codes, int64_t rows, float* out) {
  if (shape.pad % 16 == 0)
    add_entries_by(Lanes(), shape, tables, start, codes, rows, out);
  else
    add_entries_by(Eight(), shape, tables, start, codes, rows, out);
}

template <class D>
HWY_INLINE void add_by_code_by(D d, const TableExtent& shape, const float* g, const uint8_t* codes,
                               int64_t rows, float* sums) {
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t row = 0; row < rows; ++row) {
    const uint8_t* const code = codes + row * shape.inputs;
    for (int64_t at = 0; at < shape.pad; at += lanes) {
      const auto own = hn::LoadU(d, g + row * shape.pad + at);
      for (const int i : shape.live) {
        float* const to = sums + (i * shape.codes + code[i]) * shape.pad + at;
        hn::StoreU(hn::Add(hn::LoadU(d, to), own), d, to);
      }
    }
  }
}

void AddByCode(const TableExtent& shape, const float* g, const uint8_t* codes, int64_t rows,
               float* sums) {
  if (shape.pad % 16 == 0)
    add_by_code_by(Lanes(), shape, g, codes, rows, sums);
  else
    add_by_code_by(Eight(), shape, g, codes, rows, sums);
}

void PullBack(const TableExtent& shape, const float* slopes, const float* g, const uint8_t* codes,
              int64_t rows, int64_t stride, float* out) {
  const Eight d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t row = 0; row < rows; ++row) {
    const uint8_t* const code = codes + row * shape.inputs;
    float* const to = out + row * stride;
    for (const int i : shape.live) {
      const float* const slope = slopes + (i * shape.codes + code[i]) * shape.pad;
      alignas(64) float sums[8] = {};
      for (int64_t at = 0; at < shape.pad; at += 8)
        for (int64_t k = 0; k < 8; k += lanes)
          hn::Store(
              hn::Add(hn::Load(d, sums + k), hn::Mul(hn::LoadU(d, slope + at + k),
                                                     hn::LoadU(d, g + row * shape.pad + at + k))),
              d, sums + k);
      to[i] =
          ((sums[0] + sums[4]) + (sums[2] + sums[6])) + ((sums[1] + sums[5]) + (sums[3] + sums[7]));
    }
  }
}

void Spline(const Basis& basis, int64_t codes, int64_t pad, bool add, const float* coefficients,
            float* values) {
  const Eight d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t code = 0; code < codes; ++code)
    for (int64_t at = 0; at < pad; at += lanes) {
      float* const to = values + code * pad + at;
      auto sum = add ? hn::LoadU(d, to) : hn::Zero(d);
      for (int k = 0; k < spline_terms; ++k) {
        const auto place = static_cast<size_t>(code * spline_terms + k);
        sum = hn::Add(sum, hn::Mul(hn::Set(d, basis.weight[place]),
                                   hn::LoadU(d, coefficients + basis.index[place] * pad + at)));
      }
      hn::StoreU(sum, d, to);
    }
}

void SplineBack(const Basis& basis, int64_t codes, int64_t pad, const float* values,
                float* coefficients) {
  const Eight d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t code = 0; code < codes; ++code)
    for (int64_t at = 0; at < pad; at += lanes) {
      const auto value = hn::LoadU(d, values + code * pad + at);
      for (int k = 0; k < spline_terms; ++k) {
        const auto place = static_cast<size_t>(code * spline_terms + k);
        float* const to = coefficients + basis.index[place] * pad + at;
        hn::StoreU(hn::Add(hn::LoadU(d, to), hn::Mul(hn::Set(d, basis.weight[place]), value)), d,
                   to);
      }
    }
}

void AddCells(const Cells& cells, const float* values, float* tables) {
  const Eight d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  // Adding and taking it away rounds to a whole number.
  const auto magic = hn::Set(d, 12582912.0f);
  for (int64_t first = 0; first < cells.codes; first += cells.cell) {
    float all = 0;
    for (int64_t c = first; c < first + cells.cell; ++c) all += cells.counts[c];
    const auto share = hn::Set(d, 1 / all);
    for (int64_t at = 0; at < cells.pad; at += lanes) {
      auto sum = hn::Zero(d);
      for (int64_t c = first; c < first + cells.cell; ++c)
        sum = hn::Add(
            sum, hn::Mul(hn::Set(d, cells.counts[c]), hn::LoadU(d, values + c * cells.pad + at)));
      const auto scaled = hn::Mul(hn::Mul(sum, share), hn::LoadU(d, cells.up + at));
      const auto whole = hn::Sub(hn::Add(scaled, magic), magic);
      const auto entry =
          hn::Mul(hn::Mul(whole, hn::LoadU(d, cells.down + at)), hn::LoadU(d, cells.mask + at));
      for (int64_t c = first; c < first + cells.cell; ++c) {
        float* const to = tables + c * cells.pad + at;
        hn::StoreU(hn::Add(hn::LoadU(d, to), entry), d, to);
      }
    }
  }
}

void AddCellsBack(const Cells& cells, const float* gradient, float* values) {
  const Eight d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t first = 0; first < cells.codes; first += cells.cell) {
    float all = 0;
    for (int64_t c = first; c < first + cells.cell; ++c) all += cells.counts[c];
    for (int64_t at = 0; at < cells.pad; at += lanes) {
      auto sum = hn::Zero(d);
      for (int64_t c = first; c < first + cells.cell; ++c)
        sum = hn::Add(sum, hn::LoadU(d, gradient + c * cells.pad + at));
      sum = hn::Mul(sum, hn::LoadU(d, cells.mask + at));
      for (int64_t c = first; c < first + cells.cell; ++c) {
        float* const to = values + c * cells.pad + at;
        hn::StoreU(hn::Add(hn::LoadU(d, to), hn::Mul(hn::Set(d, cells.counts[c] / all), sum)), d,
                   to);
      }
    }
  }
}

void Adam(float* value, const float* gradient, float* first, float* second, int64_t n, float rate,
          float epsilon) {
  const Eight d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto keep1 = hn::Set(d, 0.9f), new1 = hn::Set(d, 0.1f), keep2 = hn::Set(d, 0.99f),
             new2 = hn::Set(d, 0.01f), small = hn::Set(d, epsilon), step = hn::Set(d, rate);
  for (int64_t i = 0; i < n; i += lanes) {
    const auto g = hn::LoadU(d, gradient + i);
    const auto m = hn::Add(hn::Mul(keep1, hn::LoadU(d, first + i)), hn::Mul(new1, g));
    const auto v = hn::Add(hn::Mul(keep2, hn::LoadU(d, second + i)), hn::Mul(new2, hn::Mul(g, g)));
    hn::StoreU(m, d, first + i);
    hn::StoreU(v, d, second + i);
    const auto move = hn::Mul(step, hn::Div(m, hn::Add(hn::Sqrt(v), small)));
    hn::StoreU(hn::Sub(hn::LoadU(d, value + i), move), d, value + i);
  }
}

}  // namespace mase::table_lanes::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace mase::table_lanes {

HWY_EXPORT(AddEntries);
void add_entries(const TableExtent& shape, const float* tables, const float* start,
                 const uint8_t* codes, int64_t rows, float* out) {
  HWY_DYNAMIC_DISPATCH(AddEntries)(shape, tables, start, codes, rows, out);
}

HWY_EXPORT(AddByCode);
void add_by_code(const TableExtent& shape, const float* g, const uint8_t* codes, int64_t rows,
                 float* sums) {
  HWY_DYNAMIC_DISPATCH(AddByCode)(shape, g, codes, rows, sums);
}

HWY_EXPORT(PullBack);
void pull_back(const TableExtent& shape, const float* slopes, const float* g, const uint8_t* codes,
               int64_t rows, int64_t stride, float* out) {
  HWY_DYNAMIC_DISPATCH(PullBack)(shape, slopes, g, codes, rows, stride, out);
}

HWY_EXPORT(Spline);
void spline(const Basis& basis, int64_t codes, int64_t pad, bool add, const float* coefficients,
            float* values) {
  HWY_DYNAMIC_DISPATCH(Spline)(basis, codes, pad, add, coefficients, values);
}

HWY_EXPORT(SplineBack);
void spline_back(const Basis& basis, int64_t codes, int64_t pad, const float* values,
                 float* coefficients) {
  HWY_DYNAMIC_DISPATCH(SplineBack)(basis, codes, pad, values, coefficients);
}

HWY_EXPORT(AddCells);
void add_cells(const Cells& cells, const float* values, float* tables) {
  HWY_DYNAMIC_DISPATCH(AddCells)(cells, values, tables);
}

HWY_EXPORT(AddCellsBack);
void add_cells_back(const Cells& cells, const float* gradient, float* values) {
  HWY_DYNAMIC_DISPATCH(AddCellsBack)(cells, gradient, values);
}

HWY_EXPORT(Adam);
void adam(float* value, const float* gradient, float* first, float* second, int64_t n, float rate,
          float epsilon) {
  HWY_DYNAMIC_DISPATCH(Adam)(value, gradient, first, second, n, rate, epsilon);
}

}  // namespace mase::table_lanes
#endif
