// SPDX-License-Identifier: Apache-2.0
// Images as rows of lanes, and the windows that slide over them. Everything is two-dimensional;
// one position axis is a plane of height 1.
#pragma once

#include <vector>

#include "mase/engine/plan.h"

namespace mase::engine {

// The plane that windows slide over: padded, and its columns sorted by their remainder modulo the
// horizontal stride, so that the columns one tap meets are neighbours. Rows are channels.
struct Planes {
  int64_t kernel[2], stride[2], before[2], dilation[2];
  int64_t size[2];    // of x
  int64_t result[2];  // of the result
  int64_t height, phase_width;
  PaddingMode mode = PaddingMode::zeros;
  bool direct = false;  // x itself is such a plane

  Planes(const Windows& windows, const Shape& x, const Shape& result, PaddingMode mode);

  int64_t taps() const { return kernel[0] * kernel[1]; }
  int64_t width() const { return stride[1] * phase_width; }
  int64_t positions() const { return height * width(); }
  // Floats from one image row to the next, and where tap (ky, kx) of the first result begins.
  int64_t pitch(int64_t n) const { return width() * n; }
  int64_t tap(int64_t ky, int64_t kx, int64_t n) const {
    const int64_t column = kx * dilation[1];
    return ky * dilation[0] * pitch(n) +
           (column % stride[1] * phase_width + column / stride[1]) * n;
  }
  // x => padded planes, and the gradient of the planes back to that of x.
  void fill(const float* x, int64_t x_stride, float* planes, int64_t stride, int64_t channels,
            int64_t n) const;
  void send_back(const float* planes, int64_t stride, float* dx, int64_t x_stride, int64_t channels,
                 int64_t n, bool accumulate) const;

 private:
  // Columns that are neighbours both in the plane and in x; `from` -1: zeros.
  struct ColumnRun {
    int64_t column, from, count;
  };
  int64_t source(int64_t index, int axis) const;  // index of x, or -1: zero

  std::vector<int64_t> row_source_;
  std::vector<ColumnRun> runs_;
};

}  // namespace mase::engine
