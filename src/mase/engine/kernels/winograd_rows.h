// SPDX-License-Identifier: Apache-2.0
// Winograd's transforms along rows, F(4, 5): four neighbouring results of five taps from eight
// values take 8 multiplications in the place of 20. Values, weights and sums of a row of taps go
// through them; the rows of taps and the channels are summed up in between by plain products.
// Points are 0, +-1, +-2, +-1/2 and infinity; sums of 150 terms are rounded twice as much as plain
// ones. Each has a plain twin in `reference`.
#pragma once

#include "mase/engine/kernels/shifted.h"

namespace mase::kernels {

constexpr int row_places = 8, row_results = 4, row_taps = 5;

// The tiles of one channel: `tiles` to a row, n samples each.
struct RowTiles {
  int64_t rows, tiles, n;
  int64_t columns;  // of x; those beyond are zeros
  int64_t pitch;    // floats from one row of x to the next
  int64_t step;     // floats from one place to the next
};

namespace reference {

// places[p * step + (row * tiles + tile) * n + b]
void winograd_rows_image(const RowTiles& tiles, const float* x, float* places);
// `count` rows of five taps => u[p * count + i]
void winograd_rows_weights(const float* w, int64_t count, float* u);
// One row of `columns` results of n samples each: y = finish(bias + what the sums stand for).
void winograd_rows_result(const float* sums, int64_t step, int64_t columns, int64_t n, float bias,
                          float* y, const Finish& finish);

}  // namespace reference

void winograd_rows_image(const RowTiles& tiles, const float* x, float* places);
void winograd_rows_weights(const float* w, int64_t count, float* u);
void winograd_rows_result(const float* sums, int64_t step, int64_t columns, int64_t n, float bias,
                          float* y, const Finish& finish);

}  // namespace mase::kernels
