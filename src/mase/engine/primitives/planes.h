// SPDX-License-Identifier: Apache-2.0
// Images as rows of lanes, and the windows that slide over them. Everything is two-dimensional;
// one position axis is a plane of height 1.
#pragma once

#include <vector>

#include "mase/engine/plan.h"
#include "mase/ops/windows.h"

namespace mase::engine {

// The plane that windows slide over: padded, its rows and columns sorted by their remainders modulo
// the strides, so that the places one tap meets are neighbours, the rows of the result as far apart
// as a row of such a phase is wide. Rows of lanes are channels.
struct Planes : PlaneWindows {
  int64_t height, phase_height, phase_width;
  bool direct = false;  // x itself is such a plane

  Planes(const Windows& windows, const Shape& x, const Shape& result, PaddingMode mode);

  int64_t positions() const { return stride[0] * stride[1] * phase(); }
  // Floats from what one row of the result meets to what the next does, and where tap (ky, kx) of
  // the first result begins.
  int64_t pitch(int64_t n) const { return phase_width * n; }
  int64_t tap(int64_t ky, int64_t kx, int64_t n) const {
    const int64_t column = kx * dilation[1];
    return (row_place(ky * dilation[0]) + column % stride[1] * phase() + column / stride[1]) * n;
  }
  // x => padded planes, of floats or of words of integers, and the gradient of the planes back to
  // that of x.
  template <class T>
  void fill(const T* x, int64_t x_stride, T* planes, int64_t stride, int64_t channels, int64_t n,
            T zero = 0) const;
  void send_back(const float* planes, int64_t stride, float* dx, int64_t x_stride, int64_t channels,
                 int64_t n, bool accumulate) const;

 private:
  // Columns that are neighbours in the plane and stride[1] apart in x; `from` -1: zeros.
  struct ColumnRun {
    int64_t column, from, count;
  };
  int64_t phase() const { return phase_height * phase_width; }
  int64_t row_place(int64_t y) const {  // of its first columns
    return y % stride[0] * stride[1] * phase() + y / stride[0] * phase_width;
  }

  std::vector<int64_t> row_source_;
  std::vector<ColumnRun> runs_;
};

}  // namespace mase::engine
