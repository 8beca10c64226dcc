// SPDX-License-Identifier: Apache-2.0
// Which axes of a tensor are rows and which are lanes. One layout carries all networks: features
// are rows, everything else is lanes, and a row's lanes lie one behind the other.
//   jets       [B, F]        F rows of (B) lanes
//   sentences  [B, S, D]     D rows of (B, S) lanes, the position innermost
//   images     [B, C, H, W]  C rows of (H, W, B) lanes, the sample innermost
// A batch smaller than the largest has fewer lanes, without gaps: kernels see rows, a stride and a
// number of lanes, and need not know what the lanes mean.
#pragma once

#include <vector>

#include "mase/ir/value_type.h"

namespace mase::engine {

// Outermost first; axis 0, the batch, is a lane.
struct Axes {
  std::vector<int> rows, lanes;

  static Axes flat(size_t rank);      // all features are rows, in their order
  static Axes channels(size_t rank);  // axis 1 is the rows, the sample is innermost
  static Axes sequence(size_t rank, size_t features = 1);  // the last axes are the rows
};

// Whether two tensors of this shape that differ in their axes are the same memory: axes of size 1
// may stand anywhere.
bool same_memory(const Shape& shape, const Axes& a, const Axes& b);

// The axes of a reshaped tensor if its memory can stay as it is: what is split or joined lies
// together, in order, in the rows or in the lanes. Nothing if values would have to move.
std::optional<Axes> reshaped_axes(const Shape& from, const Axes& axes, const Shape& to);

// The axes of a permuted tensor, whose memory stays: dimension i is dimension order[i] of before.
Axes permuted_axes(const Axes& axes, const std::vector<int64_t>& order);

// A copy between two layouts: extent and strides of each dimension.
struct StridedCopy {
  static constexpr size_t most = largest_rank + 4;  // lowering splits dimensions
  size_t rank = 0;
  int64_t extent[most], from[most], to[most];

  void add(int64_t size, int64_t from_stride, int64_t to_stride);
  // A stride of 0 in `to` adds up what is copied there; `accumulate` adds everywhere.
  void run(const float* in, float* out, bool accumulate);
};

}  // namespace mase::engine
