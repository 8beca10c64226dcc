// SPDX-License-Identifier: Apache-2.0
//   y = table(a) + 2 table(b) + c    =>    y = table(join(a, b)) + c
#include "mase/hardware/carry/join_tables.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <numeric>

#include "mase/hardware/graph/builder.h"
#include "mase/hardware/graph/linear_form.h"

namespace mase::join_tables {
namespace {

constexpr int free_bits = 5;  // of a table in front of a carry chain
constexpr int head_bits = 6;  // of one that a chain begins with
constexpr size_t first_factor = 2;

// Tables that become one, with what they are multiplied with, in the codes of the sum.
struct Part {
  std::vector<size_t> operands;  // of the sum
  std::vector<int64_t> entries;  // for the bits of all inputs, the first one's lowest
  int bits = 0;

  int64_t unit() const {
    int64_t common = 0;
    for (const int64_t entry : entries) common = std::gcd(common, entry - entries[0]);
    return common == 0 ? 1 : common & -common;
  }
  // Bits of its values, once their least one is taken off.
  int value_bits() const {
    const auto [low, high] = std::minmax_element(entries.begin(), entries.end());
    return static_cast<int>(std::bit_width(static_cast<uint64_t>((*high - *low) / unit())));
  }
};

Part merged(const Part& a, const Part& b) {
  Part result = a;
  result.operands.insert(result.operands.end(), b.operands.begin(), b.operands.end());
  result.bits += b.bits;
  result.entries.clear();
  for (const int64_t high : b.entries)
    for (const int64_t low : a.entries) result.entries.push_back(checked_add(low, high));
  return result;
}

// The table by its input's bits.
Part part_of(const IntegerGraph& graph, const IntegerNode& sum, size_t k) {
  const IntegerNode& table = graph.at(sum.inputs[k]);
  const IntegerRange& range = graph.at(table.inputs[0]).range;
  Part part{{k}, {}, range.width()};
  for (int64_t code = 0; code < int64_t{1} << part.bits; ++code) {
    int64_t value = code;
    if (range.is_signed() && (code >> (part.bits - 1) & 1) != 0) value -= int64_t{1} << part.bits;
    // What never comes is as good as the nearest that does.
    value = std::clamp(value, range.low, range.high);
    part.entries.push_back(
        checked_multiply(sum.numbers[k + first_factor],
                         table.numbers[static_cast<size_t>(value - table.numbers[0]) + 2]));
  }
  return part;
}

// Pairs by what they save, those that fill a table first, until no two fit.
void join_pairs(std::vector<Part>& parts, int most_bits, size_t most) {
  while (most > 0) {
    double best = 0;
    size_t first = 0, second = 0;
    for (size_t a = 0; a < parts.size(); ++a)
      for (size_t b = a + 1; b < parts.size(); ++b) {
        const int bits = parts[a].bits + parts[b].bits;
        if (bits > most_bits || bits <= most_bits - free_bits) continue;
        const Part both = merged(parts[a], parts[b]);
        const double saved = parts[a].value_bits() + parts[b].value_bits() - both.value_bits() +
                             (bits == most_bits ? 0.6 : 0.0);
        if (saved <= best) continue;
        best = saved;
        first = a;
        second = b;
      }
    if (best <= 0.6) return;
    parts[first] = merged(parts[first], parts[second]);
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(second));
    if (parts[first].bits > free_bits) --most;
  }
}

}  // namespace
}  // namespace mase::join_tables

namespace mase {

IntegerGraph with_joined_tables(const IntegerGraph& graph, int tables_in_line) {
  using namespace join_tables;
  std::vector<int> readers(graph.nodes.size(), 0);
  for (const IntegerId output : graph.outputs) ++readers[static_cast<size_t>(output)];
  for (const IntegerNode& node : graph.nodes)
    for (const IntegerId input : node.inputs) ++readers[static_cast<size_t>(input)];
  IntegerBuilder builder(IntegerGraph{graph.name, graph.layers, {}, {}, {}});
  std::vector<IntegerId> renamed(graph.nodes.size(), -1);
  const auto copy = [&](size_t i) {
    const IntegerNode& node = graph.nodes[i];
    builder.set_layer(node.layer);
    if (!node.op->evaluate) {
      renamed[i] = builder.input(node.range, node.frac, node.name);
      return;
    }
    if (node.op->name == "constant") {
      renamed[i] = builder.constant(node.numbers[0], node.frac);
      return;
    }
    std::vector<IntegerId> inputs;
    for (const IntegerId input : node.inputs) inputs.push_back(renamed[static_cast<size_t>(input)]);
    renamed[i] = builder.node(node.op->name, std::move(inputs), node.numbers);
  };
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const IntegerNode& node = graph.nodes[i];
    std::vector<Part> parts;
    std::vector<char> joins(node.inputs.size(), 0);
    if (node.op->name == "linear_sum") {
      size_t wide = 0;
      for (size_t k = 0; k < node.inputs.size(); ++k) {
        const IntegerNode& operand = graph.at(node.inputs[k]);
        if (operand.op->name != "table" || readers[static_cast<size_t>(node.inputs[k])] != 1)
          continue;
        const int bits = graph.at(operand.inputs[0]).range.width();
        if (bits > free_bits) ++wide;
        if (bits > free_bits || bits == 0) continue;
        parts.push_back(part_of(graph, node, k));
      }
      join_pairs(parts, free_bits, SIZE_MAX);
      const auto line = static_cast<size_t>(tables_in_line) + 1;
      const size_t heads = (parts.size() + wide + line - 1) / line;
      if (heads > wide) join_pairs(parts, head_bits, heads - wide);
    }
    std::vector<IntegerId> inputs;
    std::vector<int64_t> numbers;
    if (!parts.empty()) numbers = {node.numbers[0], node.numbers[1]};
    builder.set_layer(node.layer);
    for (const Part& part : parts) {
      if (part.operands.size() < 2) continue;
      std::vector<IntegerId> sources;
      std::vector<int64_t> widths;
      for (const size_t k : part.operands) {
        joins[k] = 1;
        const IntegerId source = graph.at(node.inputs[k]).inputs[0];
        sources.push_back(renamed[static_cast<size_t>(source)]);
        widths.push_back(graph.at(source).range.width());
      }
      const int64_t unit = part.unit(),
                    least = *std::min_element(part.entries.begin(), part.entries.end());
      std::vector<int64_t> entries;
      for (const int64_t entry : part.entries) entries.push_back((entry - least) / unit);
      numbers[1] += least;
      const IntegerId both = builder.node("join", std::move(sources), std::move(widths));
      inputs.push_back(builder.table(
          both, 0, static_cast<int>(numbers[0]) - std::countr_zero(static_cast<uint64_t>(unit)),
          entries));
      numbers.push_back(unit);
    }
    if (inputs.empty()) {
      copy(i);
    } else {
      for (size_t k = 0; k < node.inputs.size(); ++k)
        if (!joins[k]) {
          inputs.push_back(renamed[static_cast<size_t>(node.inputs[k])]);
          numbers.push_back(node.numbers[k + first_factor]);
        }
      renamed[i] = builder.node("linear_sum", std::move(inputs), std::move(numbers));
    }
    const IntegerRange own = builder.at(renamed[i]).range;
    if (node.op->evaluate)
      builder.narrow(renamed[i],
                     {std::max(own.low, node.range.low), std::min(own.high, node.range.high)});
    if (!node.name.empty()) builder.name(renamed[i], node.name);
  }
  for (const IntegerId output : graph.outputs) builder.output(renamed[static_cast<size_t>(output)]);
  return builder.finish();
}

}  // namespace mase
