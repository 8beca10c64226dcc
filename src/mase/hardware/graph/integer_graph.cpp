// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/graph/integer_graph.h"

#include <algorithm>
#include <bit>

#include "mase/hardware/graph/linear_form.h"

namespace mase {
namespace {

std::string described(const IntegerGraph& graph, size_t index) {
  const IntegerNode& node = graph.nodes[index];
  return node.name.empty() ? fmt::format("%{}", index)
                           : fmt::format("%{} ({})", index, printable(node.name));
}

void check_node(const IntegerGraph& graph, size_t index) {
  const IntegerNode& node = graph.nodes[index];
  const auto fail = [&](const std::string& cause) {
    throw Error(fmt::format("integer graph {}: {}", printable(graph.name), described(graph, index)),
                cause);
  };
  const IntegerOpRecord& op = *node.op;
  if (op.arity >= 0 && node.inputs.size() != static_cast<size_t>(op.arity))
    fail(fmt::format("{} takes {} operands, not {}", op.name, op.arity, node.inputs.size()));
  if (node.numbers.size() < op.numbers.size() ||
      (node.numbers.size() > op.numbers.size() && !op.more_numbers))
    fail(fmt::format("{} takes {} numbers, not {}", op.name, op.numbers.size(),
                     node.numbers.size()));
  for (const IntegerId input : node.inputs)
    if (input < 0 || static_cast<size_t>(input) >= index)
      fail(fmt::format("operand %{} is not defined before it", input));
  if (node.layer < -1 || node.layer >= static_cast<int>(graph.layers.size()))
    fail("its layer does not exist");
  if (node.range.low > node.range.high) fail("its interval is empty");
  if (node.range.width() > integer_limit_bits)
    fail(fmt::format("its interval is wider than {} bits", integer_limit_bits));
  const IntegerContext context = context_of(graph, node);
  if (op.check)
    if (const std::string cause = op.check(context); !cause.empty()) fail(cause);
  if (const int frac = op.frac(context); frac != node.frac)
    fail(fmt::format("its binary point is {}, not {}", frac, node.frac));
}

}  // namespace

int IntegerRange::width() const {
  const auto magnitude = [](int64_t value) {
    return static_cast<int>(std::bit_width(static_cast<uint64_t>(value < 0 ? ~value : value)));
  };
  const int bits = std::max(magnitude(low), magnitude(high));
  return low < 0 ? bits + 1 : bits;
}

const IntegerOpRecord& integer_op(const std::string& name) {
  return Registry<IntegerOpRecord>::instance().get(name, "integer graph");
}

IntegerContext context_of(const IntegerGraph& graph, const IntegerNode& node) {
  IntegerContext context{node, {}, {}, {}};
  context.ranges.reserve(node.inputs.size());
  context.fracs.reserve(node.inputs.size());
  context.low_zeros.reserve(node.inputs.size());
  for (const IntegerId input : node.inputs) {
    const IntegerNode& operand = graph.at(input);
    context.ranges.push_back(operand.range);
    context.fracs.push_back(operand.frac);
    context.low_zeros.push_back(operand.op->low_zeros ? operand.op->low_zeros(operand) : 0);
  }
  return context;
}

void verify(const IntegerGraph& graph) {
  for (size_t i = 0; i < graph.nodes.size(); ++i) check_node(graph, i);
  const auto check_list = [&](const std::vector<IntegerId>& ids, const char* what) {
    for (const IntegerId id : ids)
      if (id < 0 || static_cast<size_t>(id) >= graph.nodes.size())
        throw Error(fmt::format("integer graph {}", printable(graph.name)),
                    fmt::format("{} %{} does not exist", what, id));
  };
  check_list(graph.inputs, "input");
  check_list(graph.outputs, "output");
  std::vector<char> narrower(graph.nodes.size(), 0);  // than the operands' intervals say
  const auto known_range = [&](size_t i) {
    return graph.nodes[i].op->range(context_of(graph, graph.nodes[i]));
  };
  const auto refuse = [&](size_t i) {
    const IntegerRange known = known_range(i), &own = graph.nodes[i].range;
    throw Error(fmt::format("integer graph {}: {}", printable(graph.name), described(graph, i)),
                fmt::format("its values lie in [{}, {}], not in [{}, {}]", known.low, known.high,
                            own.low, own.high));
  };
  bool any = false;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].range.contains(known_range(i))) continue;
    if (!graph.nodes[i].op->affine) refuse(i);
    narrower[i] = 1;
    any = true;
  }
  // The linear form may know better, never worse.
  if (any)
    visit_linear_forms(graph, [&](size_t i, const LinearForm& form) {
      if (narrower[i] && !graph.nodes[i].range.contains(range_of(form, graph))) refuse(i);
    });
}

namespace {

void interpret_row(const IntegerGraph& graph, const int64_t* row, std::vector<int64_t>& codes,
                   std::vector<int64_t>& operands) {
  for (size_t k = 0; k < graph.inputs.size(); ++k) {
    const IntegerRange& range = graph.at(graph.inputs[k]).range;
    if (row[k] < range.low || row[k] > range.high)
      throw Error(fmt::format("integer graph {}: input {}", printable(graph.name), k),
                  fmt::format("{} lies outside [{}, {}]", row[k], range.low, range.high));
    codes[static_cast<size_t>(graph.inputs[k])] = row[k];
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const IntegerNode& node = graph.nodes[i];
    if (!node.op->evaluate) continue;  // inputs
    operands.clear();
    for (const IntegerId input : node.inputs) operands.push_back(codes[static_cast<size_t>(input)]);
    codes[i] = node.op->evaluate(operands.data(), node);
  }
}

}  // namespace

std::vector<int64_t> interpret_all(const IntegerGraph& graph, const int64_t* row) {
  std::vector<int64_t> codes(graph.nodes.size()), operands;
  interpret_row(graph, row, codes, operands);
  return codes;
}

std::vector<int64_t> interpret_reference(const IntegerGraph& graph,
                                         const std::vector<int64_t>& rows) {
  const size_t width = graph.inputs.size();
  MASE_CHECK(width > 0 && rows.size() % width == 0, "{} codes for {} inputs", rows.size(), width);
  std::vector<int64_t> results;
  results.reserve(rows.size() / width * graph.outputs.size());
  std::vector<int64_t> codes(graph.nodes.size()), operands;
  for (size_t first = 0; first < rows.size(); first += width) {
    interpret_row(graph, rows.data() + first, codes, operands);
    for (const IntegerId output : graph.outputs)
      results.push_back(codes[static_cast<size_t>(output)]);
  }
  return results;
}

}  // namespace mase
