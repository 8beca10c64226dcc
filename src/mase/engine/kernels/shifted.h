// SPDX-License-Identifier: Apache-2.0
// Products with rows that begin anywhere: sums over w times x shifted along the lanes. A
// convolution is this with one row for each channel and tap; a sample's own matrix product is this
// with one row for each summed index. Nothing outside the n lanes of a row is read or written, and
// rows need no alignment. Each has a plain twin in `reference`.
#pragma once

#include <cstdint>

namespace mase::kernels {

struct ShiftedShape {
  int64_t out, in;
  int64_t out_step, in_step;  // of the weights
  const int64_t* offsets;     // where row i of x begins
  int64_t y_stride;           // from one row of y (or g) to the next
  int64_t n;                  // lanes of a segment
  // A row is `segments` pieces, so far apart in x and in y.
  int64_t segments = 1, x_step = 0, y_step = 0;
  int threads = 1;
  const float* start = nullptr;  // by lanes: what each row of y begins with, where there is no bias
};

namespace reference {

// y[o] = relu(bias[o] + sum over i of w(o, i) x[offsets[i]...]); `accumulate`: added to y, without
// bias or start.
void shifted_linear(const ShiftedShape& shape, const float* w, const float* bias, const float* x,
                    float* y, bool relu, bool accumulate);
// dw(o, i) = sum over the lanes of g[o] x[offsets[i]...]
void shifted_gradient(const ShiftedShape& shape, const float* g, const float* x, float* dw,
                      bool accumulate);

}  // namespace reference

void shifted_linear(const ShiftedShape& shape, const float* w, const float* bias, const float* x,
                    float* y, bool relu, bool accumulate);
void shifted_gradient(const ShiftedShape& shape, const float* g, const float* x, float* dw,
                      bool accumulate);

}  // namespace mase::kernels
