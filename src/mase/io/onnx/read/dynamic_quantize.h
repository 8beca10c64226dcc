// SPDX-License-Identifier: Apache-2.0
// Integers whose scale follows from the values that are there, and sums of their products.
#pragma once

#include "mase/io/onnx/read/operator.h"

namespace mase::onnx {

// x as unsigned integers of 8 bits: 0 and all values lie in their range.
struct Dynamic {
  Operand codes, scale, zero;
};
Dynamic dynamically_quantized(NodeContext& context, const Operand& x);

// Tells the user where sums of so many products of these integers may not be exact.
void note_exactness(NodeContext& context, int64_t terms, Element a, Element b);

}  // namespace mase::onnx
