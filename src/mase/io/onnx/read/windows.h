// SPDX-License-Identifier: Apache-2.0
// The attributes that convolutions and pools share: strides, dilations, pads and the old auto_pad.
#pragma once

#include <cstdint>
#include <vector>

#include "mase/io/onnx/read/operator.h"

namespace mase::onnx {

struct WindowAttributes {
  std::vector<int64_t> strides, dilations, before, after;  // padding before and after
};

// For input 0 [N, C, positions...] and windows of this size.
WindowAttributes read_windows(const NodeContext& context, const Shape& kernel, bool transposed);

// x with the padding around its positions.
Operand padded(NodeContext& context, const Operand& x, const WindowAttributes& windows,
               double value);

}  // namespace mase::onnx
