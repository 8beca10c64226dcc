// SPDX-License-Identifier: Apache-2.0
// Quantising and dequantising as ONNX's own operators mean it, for the operators that do either.
#pragma once

#include "mase/io/onnx/read/operator.h"

namespace mase::onnx {

// Which inputs of a node hold scale and zero point, and what their numbers go along.
struct ScaleInputs {
  size_t scale, zero;
  int64_t axis = 1, block = 0;  // of the tensor that is scaled
};

// Real numbers as integers (or small floats) of a type: Operand::codes where that is a number
// format.
Operand quantized(NodeContext& context, const Operand& x, const ScaleInputs& inputs,
                  Element element);
// The other way.
Operand dequantized(NodeContext& context, const Operand& x, const ScaleInputs& inputs);

// Integers less their zero point, exactly, as numbers; constants keep the format their integers
// have. `zero` may name no input: it is 0 then.
Operand centred(NodeContext& context, const Operand& x, size_t zero, int64_t axis);

// A scale or zero point (constants) shaped for a tensor that it broadcasts with.
Operand spread(NodeContext& context, const Operand& numbers, const Sizes& shape,
               const ScaleInputs& inputs);

// Whole numbers with the bits beyond their type dropped; nothing changes from 32 bits on.
Operand wrapped(NodeContext& context, const Operand& x, Element element);

// What rounding to floats of 16 bits or fewer is; nothing for other elements.
std::optional<OperandFormat> float_format(Element element, bool saturates);
bool holds(Element wide, Element narrow);  // every number of one is one of the other; of floats

struct IntegerRange {
  double lowest, largest;
};
std::optional<IntegerRange> integer_range(Element element);  // of up to 16 bits

}  // namespace mase::onnx
