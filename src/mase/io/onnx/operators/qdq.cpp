// SPDX-License-Identifier: Apache-2.0
// ONNX's own quantisers. A QuantizeLinear and a DequantizeLinear with the same scale, a Clip
// between them or not, are one number format:
//
//   QuantizeLinear -> [Clip] -> DequantizeLinear   =>   affine numbers of an operand
//
// Constant integers become their values, and the format of the layer that takes them.
#include "mase/io/onnx/read/quantize_nodes.h"

namespace mase::onnx::qdq_operators {
namespace {

ScaleInputs scale_inputs(const NodeContext& context) {
  const int64_t block = context.integer("block_size", 0);
  if (block < 0) context.fail(fmt::format("blocks of {} values", block));
  return {.scale = 1, .zero = 2, .axis = context.integer("axis", 1), .block = block};
}

void quantize_linear(NodeContext& context) {
  Element element = Element::u8;
  if (context.has(2))
    element = context.input(2).element;
  else if (context.integer("output_dtype", 0) != 0)
    element = static_cast<Element>(context.integer("output_dtype", 0));
  context.result(0, quantized(context, context.input(0), scale_inputs(context), element));
}

void dequantize_linear(NodeContext& context) {
  const Operand& x = context.input(0);
  const ScaleInputs inputs = scale_inputs(context);
  const Operand result = dequantized(context, x, inputs);
  if (inputs.block > 0 && result.is_constant() && !result.format)
    context.note(fmt::format("{}: {} with a scale for every {} values are kept as real numbers",
                             context.place(), element_name(x.element), inputs.block));
  context.result(0, result);
}

const Register<OnnxOperator> quantize_operator{
    {.name = "QuantizeLinear",
     .aliases = {"com.microsoft::QuantizeLinear"},
     .summary = "the format 'affine' or 'integer' of an operand, with its DequantizeLinear",
     .convert = quantize_linear}};
const Register<OnnxOperator> dequantize_operator{
    {.name = "DequantizeLinear",
     .aliases = {"com.microsoft::DequantizeLinear"},
     .summary = "the format 'affine' or 'integer' of an operand",
     .convert = dequantize_linear}};

}  // namespace
}  // namespace mase::onnx::qdq_operators
