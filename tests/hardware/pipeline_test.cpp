// SPDX-License-Identifier: Apache-2.0
// Registers: the same function, as many on every path, within the target, and few bits of them.
#include "mase/hardware/optimize/pipeline.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "mase/hardware/emit/design.h"
#include "mase/hardware/graph/builder.h"
#include "mase/hardware/optimize/min_cut.h"
#include "mase/hardware/optimize/optimize.h"

namespace mase::test::pipeline_test {
namespace {

int64_t register_bits(const IntegerGraph& graph) { return cost_of(graph).registers; }

// Of all ways from inputs, how many registers a node has before it; -1: they differ.
std::vector<int> registers_before(const IntegerGraph& graph) {
  std::vector<int> count(graph.nodes.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const IntegerNode& node = graph.nodes[i];
    int own = -2;
    for (const IntegerId id : node.inputs) {
      if (graph.at(id).op->name == "constant") continue;
      const int before = count[static_cast<size_t>(id)];
      own = own == -2 || own == before ? before : -1;
    }
    count[i] = own == -2 ? 0 : own < 0 ? -1 : own + (node.op->name == "register");
  }
  return count;
}

RC_GTEST_PROP(pipeline_property, keeps_function_paths_and_target, ()) {
  IntegerBuilder builder("random");
  std::vector<IntegerId> values;
  const size_t inputs = *rc::gen::inRange<size_t>(1, 5);
  for (size_t i = 0; i < inputs; ++i)
    values.push_back(
        builder.input({*rc::gen::element<int64_t>(0, -8), 7}, 0, fmt::format("x_{}", i)));
  const int operations = *rc::gen::inRange(1, 30);
  for (int k = 0; k < operations; ++k) {
    const IntegerId a = values[*rc::gen::inRange<size_t>(0, values.size())],
                    b = values[*rc::gen::inRange<size_t>(0, values.size())];
    IntegerId next = a;
    switch (*rc::gen::inRange(0, 4)) {
      case 0:
        next = builder.add(a, 0, b, 0);
        break;
      case 1:
        next = builder.add(a, 0, b, 0, true);
        break;
      case 2:
        next = builder.relu(a);
        break;
      case 3:
        next = builder.clamp(a, -20, 20);
        break;
    }
    if (builder.at(next).range.width() < 24) values.push_back(next);
  }
  for (size_t i = values.size() - std::min<size_t>(3, values.size()); i < values.size(); ++i)
    builder.output(values[i]);
  const IntegerGraph graph = builder.finish();
  const double target = *rc::gen::element(3, 6, 10, 25);
  IntegerGraph piped;
  try {
    piped = pipeline(graph, target);
  } catch (const Error& error) {
    // The floor it names is kept, and nothing below it could be.
    const int floor = std::stoi(error.remedy().substr(error.remedy().rfind(' ')));
    RC_ASSERT(floor > target);
    RC_ASSERT(cost_of(pipeline(graph, floor)).levels > floor - 1);
    return;
  }
  verify(piped);
  const DesignRows rows = random_rows(graph, 50, 1);
  RC_ASSERT(interpret_reference(piped, rows.inputs) == rows.outputs);
  const std::vector<int> before = registers_before(piped);
  for (const IntegerId output : piped.outputs)
    if (piped.at(output).op->name != "constant") {
      RC_ASSERT(before[static_cast<size_t>(output)] >= 1);
      RC_ASSERT(before[static_cast<size_t>(output)] ==
                before[static_cast<size_t>(piped.outputs[0])]);
    }
  RC_ASSERT(cost_of(piped).levels <= target);
}

// Eight products of sixteen bits, each then one bit: registers stand behind the comparisons.
TEST(pipeline, registers_stand_where_there_are_few_bits) {
  IntegerBuilder builder("narrow");
  std::vector<IntegerId> bits;
  const IntegerId zero = builder.constant(0, 0);
  for (int i = 0; i < 8; ++i) {
    const IntegerId a = builder.input({-32768, 32767}, 0, fmt::format("a_{}", i)),
                    b = builder.input({-32768, 32767}, 0, fmt::format("b_{}", i));
    bits.push_back(builder.compare(builder.add(a, 0, b, 0), zero));
  }
  while (bits.size() > 1) {
    std::vector<IntegerId> next;
    for (size_t i = 0; i + 1 < bits.size(); i += 2)
      next.push_back(builder.add(bits[i], 0, bits[i + 1], 0));
    bits = next;
  }
  builder.output(bits[0]);
  const IntegerGraph graph = builder.finish();
  const double whole = cost_of(graph).levels;
  const IntegerGraph piped = pipeline(graph, whole - 1);
  EXPECT_LE(cost_of(piped).levels, whole - 1);
  EXPECT_LE(register_bits(piped), 8 + 4);
}

RC_GTEST_PROP(min_cut_property, no_other_cut_is_cheaper, ()) {
  const int nodes = *rc::gen::inRange(2, 8);
  struct Edge {
    int from, to;
    int64_t capacity;
  };
  std::vector<Edge> edges;
  const int count = *rc::gen::inRange(0, 20);
  MinCut cut(nodes);
  for (int k = 0; k < count; ++k) {
    edges.push_back({*rc::gen::inRange(0, nodes), *rc::gen::inRange(0, nodes),
                     *rc::gen::inRange<int64_t>(0, 9)});
    cut.edge(edges.back().from, edges.back().to, edges.back().capacity);
  }
  const auto price = [&](const auto& side) {
    int64_t sum = 0;
    for (const Edge& edge : edges)
      if (side(edge.from) && !side(edge.to)) sum += edge.capacity;
    return sum;
  };
  const std::vector<char> found = cut.solve(0, nodes - 1);
  RC_ASSERT(found[0] == 1);
  RC_ASSERT(found[static_cast<size_t>(nodes - 1)] == 0);
  const int64_t own = price([&](int node) { return found[static_cast<size_t>(node)] != 0; });
  for (unsigned mask = 0; mask < 1u << nodes; ++mask) {
    if ((mask & 1) == 0 || (mask >> (nodes - 1) & 1) != 0) continue;
    RC_ASSERT(own <= price([&](int node) { return (mask >> node & 1) != 0; }));
  }
}

}  // namespace
}  // namespace mase::test::pipeline_test
