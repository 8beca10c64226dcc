// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3x3 taps with 16 multiplications for four results in the place of 36: weights,
// tiles of 4x4 values and sums are transformed, and what lies between are products of matrices, one
// for each of 16 places (Lavin and Gray, "Fast Algorithms for Convolutional Neural Networks",
// 2016). The factors are 1 and 1/2, so rounding is that of a plain sum. Tiles are lanes: each
// transform is a few sweeps of additions. Each has a plain twin in `reference`.
#pragma once

#include <cstdint>

namespace mase::kernels {

constexpr int64_t winograd_places = 16;

// `rows` rows of tiles, `lanes` lanes each. Value (i, j) of the tiles of a row begins at
// offsets[i * side + j], `pitch` further for the next row. Place p of the result is at p * step,
// the rows one behind the other.
struct WinogradTiles {
  const int64_t* offsets;
  int64_t pitch, rows, lanes;
  int64_t step;
};

namespace reference {

// w [out, in, 3, 3] => u [16][out, in]
void winograd_weights(const float* w, int64_t kernels, float* u);
// du [16][out, in] => dw (+)= [out, in, 3, 3]
void winograd_weights_gradient(const float* du, int64_t kernels, float* dw, bool accumulate);
// Tiles of 4x4 values of an image => places.
void winograd_image(const WinogradTiles& tiles, const float* x, float* places);
// Tiles of 2x2 gradients of a result => places.
void winograd_result_gradient(const WinogradTiles& tiles, const float* g, float* places);
// One row of tiles, `columns` tiles of n lanes: places => two image rows of 2 * columns * n lanes,
// `row_step` apart.
void winograd_result(const float* places, int64_t step, int64_t columns, int64_t n, float bias,
                     float* rows, int64_t row_step);

}  // namespace reference

void winograd_weights(const float* w, int64_t kernels, float* u);
void winograd_weights_gradient(const float* du, int64_t kernels, float* dw, bool accumulate);
void winograd_image(const WinogradTiles& tiles, const float* x, float* places);
void winograd_result_gradient(const WinogradTiles& tiles, const float* g, float* places);
void winograd_result(const float* places, int64_t step, int64_t columns, int64_t n, float bias,
                     float* rows, int64_t row_step);

}  // namespace mase::kernels
