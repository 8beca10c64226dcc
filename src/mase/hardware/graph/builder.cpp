// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/graph/builder.h"

#include <algorithm>
#include <utility>

namespace mase {

IntegerRange FixedFormat::range() const {
  if (width <= 0) return {0, 0};
  MASE_CHECK(width <= integer_limit_bits, "format of {} bits", width);
  if (is_signed)
    return {-(int64_t{1} << (width - 1)) + (narrow ? 1 : 0), (int64_t{1} << (width - 1)) - 1};
  return {0, (int64_t{1} << width) - 1};
}

int IntegerBuilder::add_layer(const std::string& name) {
  graph_.layers.push_back(name);
  return layer_ = static_cast<int>(graph_.layers.size()) - 1;
}

bool IntegerBuilder::is_constant(IntegerId a, int64_t* value) const {
  const IntegerRange& range = at(a).range;
  *value = range.low;
  return range.low == range.high;
}

IntegerId IntegerBuilder::node(const std::string& op, std::vector<IntegerId> inputs,
                               std::vector<int64_t> numbers) {
  IntegerNode node{.op = &integer_op(op),
                   .inputs = std::move(inputs),
                   .numbers = std::move(numbers),
                   .layer = layer_};
  const IntegerContext context = context_of(graph_, node);
  if (node.op->check)
    if (const std::string cause = node.op->check(context); !cause.empty())
      throw Error(fmt::format("integer graph {}: {}", printable(graph_.name), op), cause);
  const IntegerRange range = node.op->range(context);
  const int frac = node.op->frac(context);
  if (range.width() > integer_limit_bits)
    throw Error(
        fmt::format("integer graph {}", printable(graph_.name)),
        fmt::format("{} needs {} bits; the limit is {}", op, range.width(), integer_limit_bits),
        "give the layers narrower formats");
  // What takes one value only is that constant.
  if (range.low == range.high && op != "register" && op != "input") {
    if (op != "constant") return constant(range.low, frac);
  }
  node.range = range;
  node.frac = frac;
  graph_.nodes.push_back(std::move(node));
  return static_cast<IntegerId>(graph_.nodes.size()) - 1;
}

IntegerId IntegerBuilder::input(const IntegerRange& range, int frac, const std::string& name) {
  graph_.nodes.push_back({.op = &integer_op("input"),
                          .numbers = {static_cast<int64_t>(graph_.inputs.size())},
                          .range = range,
                          .frac = frac,
                          .layer = layer_,
                          .name = name});
  graph_.inputs.push_back(static_cast<IntegerId>(graph_.nodes.size()) - 1);
  return graph_.inputs.back();
}

IntegerId IntegerBuilder::constant(int64_t value, int frac) {
  graph_.nodes.push_back({.op = &integer_op("constant"),
                          .numbers = {value},
                          .range = {value, value},
                          .frac = frac,
                          .layer = layer_});
  return static_cast<IntegerId>(graph_.nodes.size()) - 1;
}

IntegerId IntegerBuilder::scale(IntegerId a, int64_t factor, int frac) {
  if (factor == 1 && frac == at(a).frac) return a;
  return node("scale", {a}, {factor, frac});
}

IntegerId IntegerBuilder::shift(IntegerId a, int64_t amount) {
  return amount == 0 ? a : node("shift", {a}, {amount});
}

IntegerId IntegerBuilder::negate(IntegerId a) { return node("negate", {a}, {}); }

IntegerId IntegerBuilder::add(IntegerId a, int64_t shift_a, IntegerId b, int64_t shift_b,
                              bool subtract, int64_t carry) {
  int64_t value = 0;
  if (carry == 0 && is_constant(b, &value) && value == 0) return shift(a, shift_a);
  if (carry == 0 && is_constant(a, &value) && value == 0)
    return subtract ? negate(shift(b, shift_b)) : shift(b, shift_b);
  return node(subtract ? "subtract" : "add", {a, b}, {shift_a, shift_b, carry});
}

IntegerId IntegerBuilder::add_constant(IntegerId a, int64_t value) {
  return value == 0 ? a : add(a, 0, constant(value, at(a).frac), 0);
}

IntegerId IntegerBuilder::relu(IntegerId a) {
  return at(a).range.low >= 0 ? a : node("relu", {a}, {});
}

IntegerId IntegerBuilder::clamp(IntegerId a, int64_t low, int64_t high) {
  if (IntegerRange{low, high}.contains(at(a).range)) return a;
  return node("clamp", {a}, {low, high});
}

IntegerId IntegerBuilder::wrap(IntegerId a, int width, bool is_signed) {
  if (FixedFormat{.is_signed = is_signed, .width = width}.range().contains(at(a).range)) return a;
  return node("wrap", {a}, {width, is_signed ? 1 : 0});
}

IntegerId IntegerBuilder::floor_by_sign(IntegerId a, int64_t drop, int64_t below, int64_t above) {
  const IntegerRange range = at(a).range;
  const int frac = at(a).frac;
  if (range.low >= 0 || below == above) return node("floor", {add_constant(a, above)}, {drop});
  if (range.high < 0) return node("floor", {add_constant(a, below)}, {drop});
  const IntegerId negative = compare(a, constant(0, frac));
  const IntegerId more = below == above + 1
                             ? add_constant(scale(negative, 1, frac), above)
                             : select(negative, constant(below, frac), constant(above, frac));
  return node("floor", {add(a, 0, more, 0)}, {drop});
}

IntegerId IntegerBuilder::round(IntegerId a, int64_t drop, IntegerRounding rounding) {
  if (drop == 0) return a;
  const int64_t half = int64_t{1} << (drop - 1), rest = 2 * (half - 1) + 1;
  switch (rounding) {
    case IntegerRounding::half_up:
      return floor_by_sign(a, drop, half, half);
    case IntegerRounding::half_toward_zero:
      return floor_by_sign(a, drop, half, half - 1);
    case IntegerRounding::away_from_zero:
      return floor_by_sign(a, drop, 0, rest);
    case IntegerRounding::ceil:
      return floor_by_sign(a, drop, rest, rest);
    case IntegerRounding::nearest_even:
      return node("round_even", {a}, {drop});
    case IntegerRounding::half_away:
      return node("round_away", {a}, {drop});
    case IntegerRounding::toward_zero:
      return node("round_zero", {a}, {drop});
    case IntegerRounding::floor:
      break;
  }
  return node("floor", {a}, {drop});
}

IntegerId IntegerBuilder::compare(IntegerId a, IntegerId b) { return node("compare", {a, b}, {}); }

IntegerId IntegerBuilder::select(IntegerId condition, IntegerId a, IntegerId b) {
  int64_t value = 0;
  if (is_constant(condition, &value)) return value != 0 ? a : b;
  return a == b ? a : node("select", {condition, a, b}, {});
}

IntegerId IntegerBuilder::register_of(IntegerId a) { return node("register", {a}, {}); }

IntegerId IntegerBuilder::table(IntegerId a, int64_t first, int frac,
                                const std::vector<int64_t>& entries) {
  std::vector<int64_t> numbers = {first, frac};
  numbers.insert(numbers.end(), entries.begin(), entries.end());
  return node("table", {a}, std::move(numbers));
}

IntegerId IntegerBuilder::aligned(IntegerId a, int frac) {
  MASE_CHECK(frac >= at(a).frac, "binary point {} is coarser than {}", frac, at(a).frac);
  return shift(a, frac - at(a).frac);
}

IntegerId IntegerBuilder::requantize(IntegerId a, const FixedFormat& format) {
  if (format.width <= 0) return constant(0, format.frac);
  const int drop = at(a).frac - format.frac;
  IntegerId value = a;
  if (drop > 61) {
    // Everything is dropped: the code is rounded as if it were smaller than any half.
    throw Error(fmt::format("integer graph {}", printable(graph_.name)),
                fmt::format("{} fraction bits are dropped at once; the limit is 61", drop),
                "give the layers' weights fewer fraction bits");
  }
  value = drop > 0 ? round(a, drop, format.rounding) : shift(a, -drop);
  const IntegerRange range = format.range();
  return format.overflow == IntegerOverflow::saturate ? clamp(value, range.low, range.high)
                                                      : wrap(value, format.width, format.is_signed);
}

void IntegerBuilder::name(IntegerId a, const std::string& name) {
  if (graph_.at(a).name.empty()) graph_.at(a).name = name;
}

void IntegerBuilder::narrow(IntegerId a, const IntegerRange& range) { graph_.at(a).range = range; }

IntegerGraph IntegerBuilder::finish() {
  IntegerGraph graph = without_dead_nodes(graph_);
  verify(graph);
  return graph;
}

IntegerGraph without_dead_nodes(const IntegerGraph& graph, std::vector<IntegerId>* map) {
  std::vector<char> needed(graph.nodes.size(), 0);
  for (const IntegerId id : graph.inputs) needed[static_cast<size_t>(id)] = 1;
  for (const IntegerId id : graph.outputs) needed[static_cast<size_t>(id)] = 1;
  for (size_t i = graph.nodes.size(); i-- > 0;)
    if (needed[i])
      for (const IntegerId input : graph.nodes[i].inputs) needed[static_cast<size_t>(input)] = 1;
  IntegerGraph result{graph.name, graph.layers, {}, {}, {}};
  std::vector<IntegerId> renamed(graph.nodes.size(), -1);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (!needed[i]) continue;
    IntegerNode node = graph.nodes[i];
    for (IntegerId& input : node.inputs) input = renamed[static_cast<size_t>(input)];
    renamed[i] = static_cast<IntegerId>(result.nodes.size());
    result.nodes.push_back(std::move(node));
  }
  for (const IntegerId id : graph.inputs) result.inputs.push_back(renamed[static_cast<size_t>(id)]);
  for (const IntegerId id : graph.outputs)
    result.outputs.push_back(renamed[static_cast<size_t>(id)]);
  for (IntegerGraph::LinearLayer layer : graph.linear) {
    for (std::vector<IntegerId>* ids : {&layer.inputs, &layer.others, &layer.outputs})
      for (IntegerId& id : *ids) id = id < 0 ? -1 : renamed[static_cast<size_t>(id)];
    result.linear.push_back(std::move(layer));
  }
  if (map) *map = std::move(renamed);
  return result;
}

}  // namespace mase
