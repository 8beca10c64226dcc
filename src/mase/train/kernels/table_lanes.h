// SPDX-License-Identifier: Apache-2.0
// What training networks of tables spends its time on. A row is one code for each input; outputs
// lie side by side, padded to whole vectors, so that an edge's entry for a code is added to all
// outputs of its input at once. No product is fused with a sum: all machines give the same bits but
// for the order within `pull_back`'s dot products, which is always that of eight lanes.
#pragma once

#include <cstdint>
#include <span>

namespace mase::table_lanes {

inline constexpr int64_t lane_pad = 8;  // outputs are padded to multiples of this
inline constexpr int spline_terms = 4;  // basis functions that are not zero at a code

// tables[input][code][pad]; codes[row][inputs]; `live`: inputs that any edge reads.
struct TableExtent {
  int64_t inputs = 0, codes = 0, pad = 0;
  std::span<const int> live = {};
};

// out[row] = start + sum over inputs of tables[input][code of the row]
void add_entries(const TableExtent& shape, const float* tables, const float* start,
                 const uint8_t* codes, int64_t rows, float* out);
// sums[input][code of the row] += g[row]
void add_by_code(const TableExtent& shape, const float* g, const uint8_t* codes, int64_t rows,
                 float* sums);
// out[row][input] = slopes[input][code of the row] . g[row], rows of `out` being `stride` apart
void pull_back(const TableExtent& shape, const float* slopes, const float* g, const uint8_t* codes,
               int64_t rows, int64_t stride, float* out);

// values[code] (+)= sum over terms of weight * coefficients[index], all of `pad` lanes; and back.
struct Basis {
  std::span<const int> index;     // [code][spline_terms]
  std::span<const float> weight;  // the same
};
void spline(const Basis& basis, int64_t codes, int64_t pad, bool add, const float* coefficients,
            float* values);
void spline_back(const Basis& basis, int64_t codes, int64_t pad, const float* values,
                 float* coefficients);

// Cells of `cell` codes each, for lanes whose mask is 1 (else 0): the mean of a cell's values by
// the counts of its codes, times `up` to the nearest whole number, times `down`, is added to every
// code's result; and back, what every code's value has in the gradient of its cell.
struct Cells {
  int64_t codes = 0, pad = 0, cell = 1;
  const float *counts = nullptr, *mask = nullptr, *up = nullptr, *down = nullptr;
};
void add_cells(const Cells& cells, const float* values, float* tables);
void add_cells_back(const Cells& cells, const float* gradient, float* values);

// One step of Adam (Kingma and Ba, 2015) on `n` numbers; `rate` with both corrections in it.
void adam(float* value, const float* gradient, float* first, float* second, int64_t n, float rate,
          float epsilon);

}  // namespace mase::table_lanes
