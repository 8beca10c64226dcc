// SPDX-License-Identifier: Apache-2.0
// Dimensions, strides and PyTorch's broadcasting (sizes agree from the right, or are 1): the one
// place that knows them.
#pragma once

#include <optional>
#include <vector>

#include "mase/base/tensor.h"

namespace mase {

std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b);  // empty: they do not fit

// A dimension's number; a negative one counts from the end.
inline int64_t from_front(int64_t dim, size_t rank) {
  return dim < 0 ? dim + static_cast<int64_t>(rank) : dim;
}

// Values from one index of each dimension to the next, the last dimension's side by side.
void row_major_strides(const Shape& shape, int64_t* strides);
std::vector<int64_t> row_major_strides(const Shape& shape);

// The place of every element of `out` in an operand that was broadcast to it.
std::vector<size_t> broadcast_places(const Shape& operand, const Shape& out);

}  // namespace mase
