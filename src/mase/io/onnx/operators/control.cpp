// SPDX-License-Identifier: Apache-2.0
// If and Loop whose conditions and counts are known beforehand: the branch that is taken, and the
// turns of the loop one after the other.
#include <algorithm>

#include "mase/io/onnx/operator.h"

namespace mase::onnx::control_operators {
namespace {

const GraphData& body_of(const NodeContext& context, const char* name) {
  const Attribute* attribute = context.node().find(name);
  if (!attribute || !attribute->graph) context.fail(fmt::format("it has no {}", name));
  return *attribute->graph;
}

bool truth_of(const NodeContext& context, const Operand& condition) {
  if (!condition.is_constant() || condition.constant->tensor.numel() != 1)
    context.fail("its condition is computed while the network runs");
  return condition.constant->tensor.item() != 0;
}

void branch(NodeContext& context) {
  const bool taken = truth_of(context, context.input(0));
  const std::vector<Operand> results =
      context.model().convert_body(body_of(context, taken ? "then_branch" : "else_branch"), {});
  for (size_t i = 0; i < results.size(); ++i) context.result(i, results[i]);
}

// Inputs: the number of turns, the condition, what is carried from turn to turn. The body takes the
// turn's number and the condition in front, gives the condition, what is carried, and what each
// turn adds to lists.
void loop(NodeContext& context) {
  const GraphData& body = body_of(context, "body");
  constexpr int64_t most = 4096;
  int64_t turns = most + 1;
  if (context.has(0))
    turns = static_cast<int64_t>(std::clamp(context.single(0, "the number of turns"), -1.0, 1e15));
  bool goes_on = !context.has(1) || truth_of(context, context.input(1));
  std::vector<Operand> carried;
  for (size_t i = 2; i < context.input_count(); ++i) carried.push_back(context.input(i));
  if (body.outputs.size() < carried.size() + 1) context.fail("its body gives too few results");
  std::vector<std::vector<Operand>> lists(body.outputs.size() - carried.size() - 1);
  for (int64_t turn = 0; goes_on && turn < turns; ++turn) {
    if (turn == most) context.fail(fmt::format("it takes more than {} turns", most));
    std::vector<Operand> inputs = {context.whole_number(turn),
                                   context.constant_operand(Tensor(Shape{}, DType::boolean))};
    inputs[1].constant->tensor.mutable_data<bool>()[0] = true;
    inputs.insert(inputs.end(), carried.begin(), carried.end());
    const std::vector<Operand> results = context.model().convert_body(body, inputs);
    goes_on = truth_of(context, results.at(0));
    for (size_t i = 0; i < carried.size(); ++i) carried[i] = results[i + 1];
    for (size_t i = 0; i < lists.size(); ++i) lists[i].push_back(results[i + 1 + carried.size()]);
  }
  for (size_t i = 0; i < carried.size(); ++i) context.result(i, carried[i]);
  for (size_t i = 0; i < lists.size(); ++i) {
    if (!context.output_is_used(carried.size() + i)) continue;
    std::vector<Operand> rows;
    for (const Operand& row : lists[i]) {
      Shape shape = row.shape;
      shape.insert(shape.begin(), 1);
      rows.push_back(context.reshape(row, shape));
    }
    if (rows.empty()) context.fail("it makes a list of no turns");
    context.result(carried.size() + i,
                   rows.size() == 1 ? rows[0] : context.call("cat", rows, Dict{{"dim", 0}}));
  }
}

const Register<OnnxOperator> if_operator{
    {.name = "If", .summary = "the branch that is taken, if that is known", .convert = branch}};
const Register<OnnxOperator> loop_operator{
    {.name = "Loop", .summary = "its turns, if their number is known", .convert = loop}};

}  // namespace
}  // namespace mase::onnx::control_operators
