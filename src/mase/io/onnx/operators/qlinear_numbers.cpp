// SPDX-License-Identifier: Apache-2.0
// onnxruntime's operators on integers that stand for real numbers: those numbers, the operator, and
// the rounding of the result, so that scales become number formats of operands as those of
// QuantizeLinear do:
//
//   QLinearAdd(a, b)   =>   affine(a) + affine(b), rounded
#include <memory>
#include <utility>

#include "mase/io/onnx/read/quantize_nodes.h"
#include "mase/io/onnx/write/standard_node.h"

namespace mase::onnx::qlinear_number_operators {
namespace {

// Where an operand, its scale and its zero point stand among a node's inputs.
Operand numbers_at(NodeContext& context, size_t index) {
  return dequantized(context, context.input(index), {.scale = index + 1, .zero = index + 2});
}

// `like`: an input whose integers the result has if it has no zero point.
void put(NodeContext& context, const Operand& result, size_t scale, size_t like) {
  const size_t zero = scale + 1;
  context.result(0, quantized(context, result, {.scale = scale, .zero = zero},
                              context.input(context.has(zero) ? zero : like).element));
}

// An operator with so many operands.
OnnxOperator through(const char* name, const char* op, size_t operands, const char* summary) {
  return {.name = operator_name("com.microsoft", name),
          .summary = summary,
          .convert = [op, operands](NodeContext& context) {
            std::vector<Operand> inputs;
            for (size_t i = 0; i < operands; ++i) inputs.push_back(numbers_at(context, 3 * i));
            put(context, standard_node(context, op, inputs, context.node().attributes),
                3 * operands, 0);
          }};
}

// onnxruntime adds the zero point before it rounds here, which decides ties.
void average_pool(NodeContext& context) {
  if (context.integer("channels_last", 0) != 0) context.fail("its channels stand last");
  const Operand mean =
      standard_node(context, "AveragePool", {numbers_at(context, 0)}, context.node().attributes);
  Operand result = quantized(context, mean, {.scale = 3, .zero = 4},
                             context.input(context.has(4) ? 4 : 0).element);
  if (result.codes) {
    Codes codes = *result.codes;
    codes.format.zero_first = true;
    result.codes = std::make_shared<const Codes>(std::move(codes));
  }
  context.result(0, result);
}

void softmax(NodeContext& context) {
  const Operand x = numbers_at(context, 0);
  put(context,
      standard_node(context, "Softmax", {x}, context.node().attributes,
                    context.integer("opset", context.model().standard_version)),
      3, 0);
}

// The result's scale and zero point come first.
void concat(NodeContext& context) {
  if (context.input_count() < 5 || (context.input_count() - 2) % 3 != 0)
    context.fail("its inputs are no triples of values, scale and zero point");
  std::vector<Operand> inputs;
  for (size_t i = 2; i < context.input_count(); i += 3) inputs.push_back(numbers_at(context, i));
  put(context, standard_node(context, "Concat", inputs, context.node().attributes), 0, 2);
}

void where(NodeContext& context) {
  put(context,
      standard_node(context, "Where",
                    {context.input(0), numbers_at(context, 1), numbers_at(context, 4)}, {}),
      7, 1);
}

const Register<OnnxOperator> operators[] = {
    Register<OnnxOperator>(through("QLinearAdd", "Add", 2, "add and a rounding")),
    Register<OnnxOperator>({.name = "com.microsoft::QLinearAveragePool",
                            .summary = "AvgPool1d or AvgPool2d and a rounding",
                            .convert = average_pool}),
    Register<OnnxOperator>(through("QLinearReduceMean", "ReduceMean", 1, "mean and a rounding")),
    Register<OnnxOperator>(through("QLinearSigmoid", "Sigmoid", 1, "sigmoid and a rounding")),
    Register<OnnxOperator>(
        through("QLinearLeakyRelu", "LeakyRelu", 1, "leaky_relu and a rounding")),
    Register<OnnxOperator>({.name = "com.microsoft::QLinearSoftmax",
                            .summary = "softmax and a rounding",
                            .convert = softmax}),
    Register<OnnxOperator>({.name = "com.microsoft::QLinearConcat",
                            .summary = "cat and a rounding",
                            .convert = concat}),
    Register<OnnxOperator>({.name = "com.microsoft::QLinearWhere",
                            .summary = "where and a rounding",
                            .convert = where}),
};

}  // namespace
}  // namespace mase::onnx::qlinear_number_operators
