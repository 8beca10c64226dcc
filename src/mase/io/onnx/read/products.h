// SPDX-License-Identifier: Apache-2.0
// Matrix products and convolutions as layers, for all operators that are one.
#pragma once

#include <optional>

#include "mase/io/onnx/read/operator.h"

namespace mase::onnx {

// a b, as NumPy multiplies: a Linear where b is a constant matrix.
Operand product(NodeContext& context, const Operand& a, const Operand& b);

// A weight [in, out] as Linear keeps it, [out, in]; and the layer with one.
Operand turned_weight(NodeContext& context, const Operand& weight);
Operand linear(NodeContext& context, const Operand& x, const Operand& weight, const Operand* bias);

// With the node's attributes (strides, pads, ...). A bias of one number for each channel.
Operand convolution(NodeContext& context, const Operand& x, const Operand& weight,
                    const std::optional<Operand>& bias, bool transposed);

}  // namespace mase::onnx
