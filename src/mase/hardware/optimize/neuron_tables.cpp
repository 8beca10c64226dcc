// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/optimize/neuron_tables.h"

#include <algorithm>
#include <map>
#include <set>

#include "mase/hardware/graph/builder.h"
#include "mase/hardware/graph/interpreter.h"
#include "mase/hardware/optimize/optimize.h"

namespace mase {
namespace {

constexpr int lut_inputs = 6;

// One bit of a table's entries, and which of them can occur.
struct BitTable {
  std::vector<char> value, care;
};

// Halves that do not contradict each other become the same, so that the bit between them is not
// read; what is free after that is zero.
void fill_free(BitTable& table, size_t first, size_t size) {
  if (size == 1) {
    if (!table.care[first]) table.value[first] = 0;
    return;
  }
  const size_t half = size / 2, second = first + half;
  bool agree = true;
  for (size_t i = 0; i < half && agree; ++i)
    agree = !table.care[first + i] || !table.care[second + i] ||
            table.value[first + i] == table.value[second + i];
  if (!agree) {
    fill_free(table, first, half);
    fill_free(table, second, half);
    return;
  }
  for (size_t i = 0; i < half; ++i) {
    if (!table.care[first + i]) table.value[first + i] = table.value[second + i];
    table.care[first + i] = table.care[first + i] || table.care[second + i];
  }
  fill_free(table, first, half);
  for (size_t i = 0; i < half; ++i) table.value[second + i] = table.value[first + i];
}

// The entries with free ones chosen bit by bit, within the interval of those that occur.
std::vector<int64_t> filled(std::vector<int64_t> entries, const std::vector<char>& care) {
  IntegerRange range{INT64_MAX, INT64_MIN};
  for (size_t i = 0; i < entries.size(); ++i)
    if (care[i]) range = {std::min(range.low, entries[i]), std::max(range.high, entries[i])};
  const int width = std::max(1, range.width());
  std::vector<int64_t> result(entries.size(), 0);
  for (int bit = 0; bit < width; ++bit) {
    BitTable table{std::vector<char>(entries.size()), care};
    for (size_t i = 0; i < entries.size(); ++i)
      table.value[i] = static_cast<char>(entries[i] >> bit & 1);
    fill_free(table, 0, entries.size());
    for (size_t i = 0; i < entries.size(); ++i)
      result[i] |= static_cast<int64_t>(table.value[i]) << bit;
  }
  for (size_t i = 0; i < entries.size(); ++i) {
    if (range.is_signed() && (result[i] >> (width - 1) & 1)) result[i] -= int64_t{1} << width;
    result[i] = care[i] ? entries[i] : std::clamp(result[i], range.low, range.high);
  }
  return result;
}

// A function's table without the inputs it does not depend on.
std::vector<char> on_support(std::vector<char> table) {
  for (size_t step = 1; step < table.size();) {
    bool depends = false;
    for (size_t i = 0; i < table.size() && !depends; ++i)
      depends = (i & step) == 0 && table[i] != table[i | step];
    if (depends) {
      step *= 2;
      continue;
    }
    std::vector<char> smaller;
    smaller.reserve(table.size() / 2);
    for (size_t i = 0; i < table.size(); ++i)
      if ((i & step) == 0) smaller.push_back(table[i]);
    table = std::move(smaller);
  }
  return table;
}

double bit_luts(const std::vector<char>& whole) {
  const std::vector<char> table = on_support(whole);
  if (table.size() <= 2) return 0;  // a constant, a wire, or one turned over by its reader
  constexpr size_t leaf = size_t{1} << lut_inputs;
  if (table.size() <= leaf) return 1;
  double luts = 0;
  std::set<std::vector<char>> level;
  for (size_t i = 0; i < table.size(); i += leaf)
    level.insert({table.begin() + static_cast<std::ptrdiff_t>(i),
                  table.begin() + static_cast<std::ptrdiff_t>(i + leaf)});
  for (const std::vector<char>& part : level) luts += on_support(part).size() > 2;
  // A table chooses one of four: three choices of one of two.
  for (size_t size = 2 * leaf; size <= table.size(); size *= 2) {
    std::set<std::vector<char>> parts;
    for (size_t i = 0; i < table.size(); i += size) {
      const auto first = table.begin() + static_cast<std::ptrdiff_t>(i),
                 middle = first + static_cast<std::ptrdiff_t>(size / 2),
                 last = first + static_cast<std::ptrdiff_t>(size);
      if (!std::equal(first, middle, middle, last)) parts.insert({first, last});
    }
    luts += static_cast<double>(parts.size()) / 3;
  }
  return luts;
}

// Rebuilds a graph with some results as tables.
class TableWriter {
 public:
  TableWriter(const IntegerGraph& graph, const std::vector<NeuronCone>& cones)
      : graph_(graph),
        builder_(IntegerGraph{graph.name, graph.layers, {}, {}, {}}),
        renamed_(graph.nodes.size(), -1),
        occurring_(graph.nodes.size()) {
    for (const NeuronCone& cone : cones) cones_[cone.result] = &cone;
  }

  IntegerGraph write() {
    for (size_t i = 0; i < graph_.nodes.size(); ++i) {
      const IntegerNode& node = graph_.nodes[i];
      builder_.set_layer(node.layer);
      const auto cone = cones_.find(static_cast<IntegerId>(i));
      if (!node.op->evaluate)
        renamed_[i] = builder_.input(node.range, node.frac, node.name);
      else if (node.op->name == "constant")
        renamed_[i] = builder_.constant(node.numbers[0], node.frac);
      else if (cone != cones_.end())
        renamed_[i] = table(*cone->second);
      else
        renamed_[i] = copy(node);
      if (node.op->evaluate && !node.name.empty()) builder_.name(renamed_[i], node.name);
    }
    for (const IntegerId output : graph_.outputs)
      builder_.output(renamed_[static_cast<size_t>(output)]);
    return builder_.finish();
  }

  // All entries of a neuron's table.
  std::vector<int64_t> entries_of(const NeuronCone& cone) {
    std::vector<int64_t> rows;
    std::vector<size_t> places;
    std::vector<int64_t> codes;
    for (const IntegerId operand : cone.operands) codes.push_back(range_now(operand).low);
    for (bool more = true; more;) {
      bool occurs = true;
      size_t place = 0;
      int at = 0;
      for (size_t k = 0; k < codes.size(); ++k) {
        occurs = occurs && can_be(cone.operands[k], codes[k]);
        const int width = bits_now(cone.operands[k]);
        place |= static_cast<size_t>(codes[k] & ((int64_t{1} << width) - 1)) << at;
        at += width;
      }
      if (occurs) {
        rows.insert(rows.end(), codes.begin(), codes.end());
        places.push_back(place);
      }
      size_t k = 0;
      while (k < codes.size() && ++codes[k] > range_now(cone.operands[k]).high) {
        codes[k] = range_now(cone.operands[k]).low;
        ++k;
      }
      more = k < codes.size();
    }
    const std::vector<int64_t> results = IntegerProgram(alone(cone)).run(rows);
    std::vector<int64_t> entries(size_t{1} << bits_now(cone), 0);
    std::vector<char> care(entries.size(), 0);
    const IntegerRange& range = graph_.at(cone.result).range;
    std::vector<char> occurring(static_cast<size_t>(range.high - range.low) + 1, 0);
    for (size_t i = 0; i < places.size(); ++i) {
      entries[places[i]] = results[i];
      care[places[i]] = 1;
      occurring[static_cast<size_t>(results[i] - range.low)] = 1;
    }
    occurring_[static_cast<size_t>(cone.result)] = std::move(occurring);
    return filled(std::move(entries), care);
  }

 private:
  IntegerId copy(const IntegerNode& node) {
    std::vector<IntegerId> inputs;
    for (const IntegerId input : node.inputs)
      inputs.push_back(renamed_[static_cast<size_t>(input)]);
    return builder_.node(node.op->name, std::move(inputs), node.numbers);
  }

  // A value's interval as it was written: that of a table holds only what occurs.
  const IntegerRange& range_now(IntegerId id) const {
    const IntegerId written = renamed_[static_cast<size_t>(id)];
    return written < 0 ? graph_.at(id).range : builder_.at(written).range;
  }

  // Bits of it in a table's index.
  int bits_now(IntegerId id) const {
    const IntegerRange& range = range_now(id);
    return range.low == range.high ? 0 : range.width();
  }
  int bits_now(const NeuronCone& cone) const {
    int bits = 0;
    for (const IntegerId operand : cone.operands) bits += bits_now(operand);
    return bits;
  }

  bool can_be(IntegerId id, int64_t code) const {
    const IntegerRange& range = graph_.at(id).range;
    if (code < range.low || code > range.high) return false;
    const std::vector<char>& codes = occurring_[static_cast<size_t>(id)];
    return codes.empty() || codes[static_cast<size_t>(code - range.low)];
  }

  IntegerId index_of(const NeuronCone& cone) {
    std::vector<IntegerId> values;
    std::vector<int64_t> widths;
    for (const IntegerId operand : cone.operands) {
      if (bits_now(operand) == 0) continue;
      values.push_back(renamed_[static_cast<size_t>(operand)]);
      widths.push_back(bits_now(operand));
    }
    return builder_.node("join", std::move(values), std::move(widths));
  }

  IntegerId table(const NeuronCone& cone) {
    // Constants and single values need no table.
    if (bits_now(cone) == 0) return copy(graph_.at(cone.result));
    return builder_.table(index_of(cone), 0, graph_.at(cone.result).frac, entries_of(cone));
  }

  // The neuron as a graph of its own, its operands the inputs.
  IntegerGraph alone(const NeuronCone& cone) const {
    IntegerGraph part{cone_name(cone), {}, {}, {}, {}};
    std::map<IntegerId, IntegerId> ids;
    for (const IntegerId operand : cone.operands) {
      ids[operand] = static_cast<IntegerId>(part.nodes.size());
      part.inputs.push_back(ids[operand]);
      part.nodes.push_back({.op = &integer_op("input"),
                            .numbers = {static_cast<int64_t>(part.inputs.size()) - 1},
                            .range = range_now(operand),
                            .frac = graph_.at(operand).frac});
    }
    std::vector<IntegerId> needed = {cone.result};
    std::set<IntegerId> inside;
    while (!needed.empty()) {
      const IntegerId id = needed.back();
      needed.pop_back();
      if (ids.count(id) || !inside.insert(id).second) continue;
      for (const IntegerId input : graph_.at(id).inputs) needed.push_back(input);
    }
    for (const IntegerId id : inside) {
      IntegerNode node = graph_.at(id);
      node.layer = -1;
      for (IntegerId& input : node.inputs) input = ids.at(input);
      ids[id] = static_cast<IntegerId>(part.nodes.size());
      part.nodes.push_back(std::move(node));
    }
    part.outputs = {ids.at(cone.result)};
    return part;
  }

  std::string cone_name(const NeuronCone& cone) const { return graph_.at(cone.result).name; }

  const IntegerGraph& graph_;
  IntegerBuilder builder_;
  std::vector<IntegerId> renamed_;
  std::vector<std::vector<char>> occurring_;
  std::map<IntegerId, const NeuronCone*> cones_;
};

}  // namespace

std::vector<char> layer_results(const IntegerGraph& graph) {
  std::vector<char> is_result(graph.nodes.size(), 0), read_by_sum(graph.nodes.size(), 0);
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const IntegerNode& node = graph.nodes[i];
    // A register, or a constant added, is read by what reads it.
    const bool passes =
        node.op->name == "register" ||
        (is_adder(node) && std::any_of(node.inputs.begin(), node.inputs.end(), [&](IntegerId id) {
           return graph.at(id).op->name == "constant";
         }));
    const bool sum = passes ? read_by_sum[i] != 0 : node.op->affine || node.op->name == "join";
    for (const IntegerId input : node.inputs)
      if (sum) read_by_sum[static_cast<size_t>(input)] = 1;
    is_result[i] = read_by_sum[i] && !node.op->affine && node.op->evaluate && !node.inputs.empty();
  }
  for (const IntegerId output : graph.outputs)
    if (!graph.at(output).inputs.empty()) is_result[static_cast<size_t>(output)] = 1;
  return is_result;
}

std::vector<NeuronCone> neuron_cones(const IntegerGraph& graph) {
  const std::vector<char> is_result = layer_results(graph);
  std::vector<NeuronCone> cones;
  std::vector<IntegerId> needed;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!is_result[i]) continue;
    NeuronCone cone{static_cast<IntegerId>(i), {}, 0};
    std::set<IntegerId> seen, operands;
    needed = graph.nodes[i].inputs;
    while (!needed.empty()) {
      const IntegerId id = needed.back();
      needed.pop_back();
      if (!seen.insert(id).second) continue;
      const IntegerNode& node = graph.at(id);
      if (node.op->name == "constant") continue;
      if (is_result[static_cast<size_t>(id)] || node.inputs.empty())
        operands.insert(id);
      else
        needed.insert(needed.end(), node.inputs.begin(), node.inputs.end());
    }
    cone.operands.assign(operands.begin(), operands.end());
    for (const IntegerId operand : cone.operands) cone.bits += graph.at(operand).range.width();
    cones.push_back(std::move(cone));
  }
  return cones;
}

IntegerGraph with_neuron_tables(const IntegerGraph& graph, const std::vector<NeuronCone>& cones) {
  return TableWriter(graph, cones).write();
}

double neuron_table_luts(const IntegerGraph& graph, const NeuronCone& cone) {
  return table_luts(TableWriter(graph, {}).entries_of(cone), graph.at(cone.result).range.width());
}

double table_luts(const std::vector<int64_t>& entries, int width) {
  double luts = 0;
  std::vector<char> table(entries.size());
  for (int bit = 0; bit < width; ++bit) {
    for (size_t i = 0; i < entries.size(); ++i) table[i] = static_cast<char>(entries[i] >> bit & 1);
    luts += bit_luts(table);
  }
  return luts;
}

}  // namespace mase
