// SPDX-License-Identifier: Apache-2.0
// Products with rows that begin anywhere: sums over w times x shifted along the lanes. A
// convolution is this with one row for each channel and tap; a sample's own matrix product is this
// with one row for each summed index. Nothing outside the n lanes of a row is read or written, and
// rows need no alignment. Each has a plain twin in `reference`.
#pragma once

#include <cstdint>
#include <limits>

namespace mase::kernels {

// What becomes of a finished sum: `add`, laid out as the result, is added, and what is below `low`
// or above `high` set to it. NaN stays.
struct Finish {
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();
  const float* add = nullptr;

  static Finish relu(bool is) { return is ? Finish{.low = 0} : Finish{}; }
  Finish at(int64_t offset) const { return {low, high, add ? add + offset : nullptr}; }
};

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

// y[o] = finish(bias[o] + sum over i of w(o, i) x[offsets[i]...]); `accumulate`: added to y,
// without bias or start.
void shifted_linear(const ShiftedShape& shape, const float* w, const float* bias, const float* x,
                    float* y, const Finish& finish, bool accumulate);
// dw(o, i) = sum over the lanes of g[o] x[offsets[i]...]
void shifted_gradient(const ShiftedShape& shape, const float* g, const float* x, float* dw,
                      bool accumulate);
void finish_rows(const float* x, int64_t x_step, float* y, int64_t y_step, int64_t rows, int64_t n,
                 const Finish& finish);

}  // namespace reference

void shifted_linear(const ShiftedShape& shape, const float* w, const float* bias, const float* x,
                    float* y, const Finish& finish, bool accumulate);
void shifted_gradient(const ShiftedShape& shape, const float* g, const float* x, float* dw,
                      bool accumulate);
// `rows` rows of n sums each, finished on their way; `finish.add` lies as y does.
void finish_rows(const float* x, int64_t x_step, float* y, int64_t y_step, int64_t rows, int64_t n,
                 const Finish& finish);

}  // namespace mase::kernels
