// SPDX-License-Identifier: Apache-2.0
// Matrices each of whose elements is a row of lanes, or one number for all lanes: every lane has
// its own product. It has a plain twin in `reference`.
#pragma once

#include <cstdint>

namespace mase::kernels {

// Where the elements of a matrix begin, in floats: element (i, j) at i * row + j * column.
struct LaneMatrix {
  int64_t row, column;
  bool scalar = false;  // one number for all lanes
};

struct LaneProduct {
  int64_t rows, columns, terms;
  LaneMatrix a, b, y;  // a [rows][terms], b [terms][columns], y [rows][columns]
  int64_t lanes;
  bool padded;  // rows of lanes are those of kernels.h, whose padding may be read and written
};

namespace reference {

// y = a b; `accumulate`: added to y
void lane_product(const LaneProduct& shape, const float* a, const float* b, float* y,
                  bool accumulate);

}  // namespace reference

void lane_product(const LaneProduct& shape, const float* a, const float* b, float* y,
                  bool accumulate);

}  // namespace mase::kernels
