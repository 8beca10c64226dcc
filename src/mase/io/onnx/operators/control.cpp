// SPDX-License-Identifier: Apache-2.0
// If, Loop and Scan whose conditions and counts are known beforehand: the branch that is taken, and
// the turns of the loop one after the other.
#include <algorithm>

#include "mase/io/onnx/read/operator.h"

namespace mase::onnx::control_operators {
namespace {

const GraphData& body_of(const NodeContext& context, const char* name) {
  const Attribute* attribute = context.node().find(name);
  if (!attribute || !attribute->graph) context.fail(fmt::format("it has no {}", name));
  return *attribute->graph;
}

bool truth_of(const NodeContext& context, const Operand& condition) {
  if (condition.sizes) context.needs_batch("its condition depends on the size of the batch");
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

// What the turns give, one behind the other along a new axis.
Operand stacked(NodeContext& context, const std::vector<Operand>& turns, int64_t axis) {
  if (turns.empty()) context.fail("it makes a list of no turns");
  const int64_t dim = context.checked_axis(axis, turns[0].rank() + 1);
  std::vector<Operand> rows;
  for (const Operand& row : turns) {
    Sizes shape = row.shape;
    if (shape.size() != turns[0].rank()) context.fail("its turns differ in shape");
    shape.insert(shape.begin() + dim, 1);
    rows.push_back(context.reshape(row, shape));
  }
  return rows.size() == 1 ? rows[0] : context.call("cat", rows, Dict{{"dim", dim}});
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
  for (size_t i = 2; i < context.input_count(); ++i) carried.push_back(context.value(i));
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
    if (context.output_is_used(carried.size() + i))
      context.result(carried.size() + i, stacked(context, lists[i], 0));
  }
}

// What stands at `index` of a dimension, without it.
Operand entry(NodeContext& context, const Operand& x, int64_t axis, int64_t index) {
  Sizes rest = x.shape;
  rest.erase(rest.begin() + axis);
  const Operand one =
      context.call("narrow", {x}, Dict{{"dim", axis}, {"start", index}, {"length", 1}});
  return context.reshape(one, rest);
}

// Inputs: what is carried from turn to turn, then tensors of which each turn takes the next entry
// of an axis. The body gives what is carried, and an entry for each list.
void scan(NodeContext& context) {
  constexpr int64_t without_batch_since = 9;
  if (context.version() < without_batch_since) context.fail("a Scan of operator set 8");
  const GraphData& body = body_of(context, "body");
  const int64_t scanned = context.integer("num_scan_inputs", 0);
  const auto inputs = static_cast<int64_t>(context.input_count());
  if (scanned < 1 || scanned > inputs) context.fail(fmt::format("it scans {} inputs", scanned));
  const auto carried_count = static_cast<size_t>(inputs - scanned);
  if (body.outputs.size() < carried_count) context.fail("its body gives too few results");
  const size_t list_count = body.outputs.size() - carried_count;
  const auto numbers = [&](const char* name, size_t count) {
    std::vector<int64_t> given = context.integer_list(name, std::vector<int64_t>(count, 0));
    if (given.size() != count) context.fail(fmt::format("{} has not {} numbers", name, count));
    return given;
  };
  std::vector<int64_t> axes = numbers("scan_input_axes", static_cast<size_t>(scanned));
  const std::vector<int64_t> ways = numbers("scan_input_directions", static_cast<size_t>(scanned));
  int64_t turns = -1;
  for (size_t i = 0; i < axes.size(); ++i) {
    const Operand& x = context.input(carried_count + i);
    axes[i] = context.checked_axis(axes[i], x.rank());
    if (x.shape[static_cast<size_t>(axes[i])].has_batch())
      context.needs_batch("it scans the entries of the batch");
    const int64_t size = x.shape[static_cast<size_t>(axes[i])];
    if (turns >= 0 && size != turns) context.fail("what it scans differs in length");
    turns = size;
  }
  constexpr int64_t most = 4096;
  if (turns > most) context.fail(fmt::format("it takes more than {} turns", most));
  std::vector<Operand> carried;
  for (size_t i = 0; i < carried_count; ++i) carried.push_back(context.value(i));
  std::vector<std::vector<Operand>> lists(list_count);
  for (int64_t turn = 0; turn < turns; ++turn) {
    std::vector<Operand> given = carried;
    for (size_t i = 0; i < axes.size(); ++i)
      given.push_back(entry(context, context.input(carried_count + i), axes[i],
                            ways[i] == 0 ? turn : turns - 1 - turn));
    const std::vector<Operand> results = context.model().convert_body(body, given);
    carried.assign(results.begin(), results.begin() + static_cast<int64_t>(carried_count));
    for (size_t i = 0; i < list_count; ++i) lists[i].push_back(results[carried_count + i]);
  }
  for (size_t i = 0; i < carried_count; ++i) context.result(i, carried[i]);
  const std::vector<int64_t> to = numbers("scan_output_axes", list_count),
                             order = numbers("scan_output_directions", list_count);
  for (size_t i = 0; i < list_count; ++i) {
    if (!context.output_is_used(carried_count + i)) continue;
    if (order[i] != 0) std::reverse(lists[i].begin(), lists[i].end());
    context.result(carried_count + i, stacked(context, lists[i], to[i]));
  }
}

const Register<OnnxOperator> if_operator{
    {.name = "If", .summary = "the branch that is taken, if that is known", .convert = branch}};
const Register<OnnxOperator> loop_operator{
    {.name = "Loop", .summary = "its turns, if their number is known", .convert = loop}};
const Register<OnnxOperator> scan_operator{
    {.name = "Scan", .summary = "its turns, if their number is known", .convert = scan}};

}  // namespace
}  // namespace mase::onnx::control_operators
