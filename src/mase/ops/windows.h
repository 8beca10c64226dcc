// SPDX-License-Identifier: Apache-2.0
// Windows that slide over the positions of [N, C, positions...]: what convolutions and pools share
// in reading their attributes, and the plain loops over a window.
#pragma once

#include <string>
#include <vector>

#include "mase/ir/op.h"

namespace mase {

// A number for all dimensions or a list of one for each, as PyTorch takes them.
std::vector<int64_t> per_dimension(const Value& value, size_t dims, const std::string& name);
Field size_field(const std::string& name, Value default_value, const std::string& help,
                 double minimum, bool required = false);
// "(5, 5)", "(3,)"
std::string tuple_text(const std::vector<int64_t>& values);

PaddingMode padding_mode_of(const std::string& name);
Field padding_mode_field();
// The index inside [0, length) that stands at an index beside it; -1: none, a zero or a value.
int64_t padded_source(int64_t index, int64_t length, PaddingMode mode);

// Windows with everything as two dimensions, a single one being a plane of height 1.
struct PlaneWindows {
  int64_t kernel[2], stride[2], before[2], dilation[2];
  int64_t size[2];    // of x
  int64_t result[2];  // of the result
  PaddingMode mode = PaddingMode::zeros;

  PlaneWindows(const Windows& windows, const Shape& x, const Shape& result,
               PaddingMode mode = PaddingMode::zeros);
  int64_t taps() const { return kernel[0] * kernel[1]; }
  // The index of x at an index of the padded plane; -1: none.
  int64_t source(int64_t index, int axis) const {
    return padded_source(index - before[axis], size[axis], mode);
  }
};

// Plain loops over them, for references.
struct WindowPlane : PlaneWindows {
  using PlaneWindows::PlaneWindows;
  int64_t positions() const { return size[0] * size[1]; }
  int64_t results() const { return result[0] * result[1]; }
  // Calls visit(result index, tap index, x index) for all that lie inside or are mirrored there.
  template <class Visit>
  void each(const Visit& visit) const {
    for (int64_t y = 0; y < result[0]; ++y)
      for (int64_t x = 0; x < result[1]; ++x)
        for (int64_t ky = 0; ky < kernel[0]; ++ky)
          for (int64_t kx = 0; kx < kernel[1]; ++kx) {
            const int64_t row = source(y * stride[0] + ky * dilation[0], 0);
            const int64_t column = source(x * stride[1] + kx * dilation[1], 1);
            if (row >= 0 && column >= 0)
              visit(static_cast<size_t>(y * result[1] + x),
                    static_cast<size_t>(ky * kernel[1] + kx),
                    static_cast<size_t>(row * size[1] + column));
          }
  }
};

}  // namespace mase
