// SPDX-License-Identifier: Apache-2.0
// QONNX's operators on [N, positions..., C]: the same layers between permutations.
#include <numeric>

#include "mase/io/onnx/read/operand_format.h"
#include "mase/io/onnx/read/tensor_moves.h"
#include "mase/io/onnx/write/standard_node.h"

namespace mase::onnx::channels_last_operators {
namespace {

constexpr const char* domain = "qonnx.custom_op.channels_last";

std::vector<int64_t> to_first(size_t rank) {
  std::vector<int64_t> order = {0, static_cast<int64_t>(rank) - 1};
  for (size_t i = 1; i + 1 < rank; ++i) order.push_back(static_cast<int64_t>(i));
  return order;
}

std::vector<int64_t> to_last(size_t rank) {
  std::vector<int64_t> order = {0};
  for (size_t i = 2; i < rank; ++i) order.push_back(static_cast<int64_t>(i));
  order.push_back(1);
  return order;
}

Operand moved(NodeContext& context, const Operand& x, const std::vector<int64_t>& order) {
  if (!x.is_constant()) return context.call("permute", {x}, Dict{{"dims", Value::of(order)}});
  context.model().budget->charge(x.constant->tensor.bytes(), context.place());
  Operand result = context.like(x, transposed(x.constant->tensor, order));
  if (x.format) result.format = permuted(*x.format, order, x.rank());
  return result;
}

// The node of the standard domain with its input (and a convolution's weight) turned.
void convert(NodeContext& context) {
  const NodeData& node = context.node();
  const bool matrix = context.input(0).rank() < 3;  // [N, C] is both
  const size_t turned = matrix ? 0 : node.op == "Conv" ? 2 : 1;
  std::vector<Operand> inputs;
  for (size_t i = 0; i < context.input_count() && context.has(i); ++i) {
    const Operand& operand = context.input(i);
    inputs.push_back(i < turned ? moved(context, operand, to_first(operand.rank())) : operand);
  }
  const Operand result = standard_node(context, node.op, inputs, node.attributes);
  context.result(0, matrix ? result : moved(context, result, to_last(result.rank())));
}

OnnxOperator channels_last(const char* op, const char* summary) {
  return {.name = operator_name(domain, op), .summary = summary, .convert = convert};
}

const Register<OnnxOperator> operators[] = {
    Register<OnnxOperator>(channels_last("Conv", "Conv1d or Conv2d between permutations")),
    Register<OnnxOperator>(channels_last("MaxPool", "MaxPool1d or MaxPool2d between permutations")),
    Register<OnnxOperator>(
        channels_last("AveragePool", "AvgPool1d or AvgPool2d between permutations")),
    Register<OnnxOperator>(
        channels_last("BatchNormalization", "BatchNorm1d or BatchNorm2d between permutations")),
};

}  // namespace
}  // namespace mase::onnx::channels_last_operators
