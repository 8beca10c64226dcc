// SPDX-License-Identifier: Apache-2.0
// PyTorch's broadcasting, the one place that knows it: sizes agree from the right, or are 1.
#pragma once

#include <optional>
#include <vector>

#include "mase/base/tensor.h"

namespace mase {

std::optional<Shape> broadcast_shape(const Shape& a, const Shape& b);  // empty: they do not fit

// The place of every element of `out` in an operand that was broadcast to it.
std::vector<size_t> broadcast_places(const Shape& operand, const Shape& out);

}  // namespace mase
