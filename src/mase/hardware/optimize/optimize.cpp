// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/optimize/optimize.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

#include "mase/formats/few_digits.h"
#include "mase/hardware/carry/carry_chains.h"
#include "mase/hardware/carry/join_tables.h"
#include "mase/hardware/cost/bill.h"
#include "mase/hardware/cost/bit_times.h"
#include "mase/hardware/cost/estimate.h"
#include "mase/hardware/graph/builder.h"
#include "mase/hardware/optimize/neuron_tables.h"
#include "mase/hardware/optimize/share_additions.h"

namespace mase {
namespace {

constexpr double large_work = 4e5;
constexpr size_t many_nodes = 50000;  // of which trees are built once only
constexpr size_t few_nodes = 5000;    // of which chains of all lengths are tried
constexpr int most_table_bits = 10;   // a wider table is hardly ever cheaper than a sum

void add_cost(GraphCost& cost, const IntegerGraph& graph, const IntegerNode& node, int bits) {
  const double luts = node_luts(graph, node, bits);
  cost.luts += luts;
  if (const int64_t adders = adder_count(node); adders > 0) {
    cost.adders += adders;
    cost.adder_bits += static_cast<int64_t>(luts);
    cost.adder_luts += is_adder(node) ? adder_luts(graph, node)
                                      : static_cast<double>(adders) *
                                            chain_luts(luts / static_cast<double>(adders));
  }
  if (node.op->entries) cost.table_luts += luts;
  if (node.op->name == "register") cost.registers += node.range.width();
}

// floor(relu(source) + constant), the constant less than what is dropped.
struct RoundedRelu {
  IntegerId source;
  int64_t constant;
};
std::optional<RoundedRelu> rounded_relu(const IntegerGraph& graph, const IntegerNode& node) {
  if (node.op->name != "floor") return {};
  const IntegerNode* below = &graph.at(node.inputs[0]);
  int64_t constant = 0;
  if (below->op->name == "add" && below->numbers == std::vector<int64_t>{0, 0, 0}) {
    const IntegerNode& second = graph.at(below->inputs[1]);
    if (second.op->name != "constant") return {};
    constant = second.numbers[0];
    below = &graph.at(below->inputs[0]);
  }
  if (below->op->name != "relu" || constant < 0 || constant >= int64_t{1} << node.numbers[0])
    return {};
  return RoundedRelu{below->inputs[0], constant};
}

}  // namespace

bool is_adder(const IntegerNode& node) {
  return node.op->name == "add" || node.op->name == "subtract" || node.op->name == "chain";
}

int64_t adder_count(const IntegerNode& node) {
  if (node.op->name != "linear_sum")
    return is_adder(node) ? static_cast<int64_t>(node.inputs.size()) - 1 : 0;
  int64_t digits = node.numbers[1] != 0;
  for (size_t k = 2; k < node.numbers.size(); ++k) digits += signed_digit_count(node.numbers[k]);
  return std::max<int64_t>(0, digits - 1);
}

std::vector<int> bits_read(const IntegerGraph& graph) {
  std::vector<int> bits(graph.nodes.size(), 0);
  for (const IntegerId output : graph.outputs)
    bits[static_cast<size_t>(output)] = graph.at(output).range.width();
  for (size_t i = graph.nodes.size(); i-- > 0;) {
    const IntegerNode& node = graph.nodes[i];
    for (const IntegerId input : node.inputs) {
      const int all = graph.at(input).range.width();
      int& read = bits[static_cast<size_t>(input)];
      read = std::max(
          read, node.op->name == "wrap" ? std::min(all, static_cast<int>(node.numbers[0])) : all);
    }
  }
  return bits;
}

double node_luts(const IntegerGraph& graph, const IntegerNode& node, int bits) {
  if (!node.op->luts) return 0;
  // A carry chain's highest bits may be all that is wanted of it, and tables say exactly what they
  // cost.
  if (bits <= 0 || bits >= node.range.width() || is_adder(node) || node.op->entries)
    return node.op->luts(context_of(graph, node));
  IntegerNode narrow = node;
  narrow.range = {0, (int64_t{1} << bits) - 1};
  return node.op->luts(context_of(graph, narrow));
}

std::vector<double> arrival_times(const IntegerGraph& graph) {
  std::vector<double> times(graph.nodes.size(), 0);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const IntegerNode& node = graph.nodes[i];
    if (node.op->name == "register") continue;
    for (const IntegerId input : node.inputs)
      times[i] = std::max(times[i], times[static_cast<size_t>(input)]);
    if (node.op->delay) times[i] += node.op->delay(context_of(graph, node));
  }
  return times;
}

GraphCost cost_of(const IntegerGraph& graph) {
  GraphCost cost;
  const std::vector<int> bits = bits_read(graph);
  const std::vector<char> inside = tables_in_chains(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    if (!inside[i]) add_cost(cost, graph, graph.nodes[i], bits[i]);
  for (const double time : last_bit_times(graph))
    cost.levels = std::max(cost.levels, time + pin_levels);
  return cost;
}

std::vector<GraphCost> cost_by_layer(const IntegerGraph& graph) {
  std::vector<GraphCost> costs(graph.layers.size());
  const std::vector<double> times = last_bit_times(graph);
  const std::vector<int> bits = bits_read(graph);
  const std::vector<char> inside = tables_in_chains(graph);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    if (graph.nodes[i].layer < 0) continue;
    GraphCost& cost = costs[static_cast<size_t>(graph.nodes[i].layer)];
    if (!inside[i]) add_cost(cost, graph, graph.nodes[i], bits[i]);
    cost.levels = std::max(cost.levels, times[i]);
  }
  // Of a layer itself: what it adds to the layers before it.
  double before = 0;
  for (GraphCost& cost : costs) {
    const double last = std::max(before, cost.levels);
    cost.levels = last - before;
    before = last;
  }
  return costs;
}

IntegerGraph merge_rounding(const IntegerGraph& graph) {
  IntegerBuilder builder(IntegerGraph{graph.name, graph.layers, {}, {}, {}});
  std::vector<IntegerId> renamed(graph.nodes.size(), -1);
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const IntegerNode& node = graph.nodes[i];
    builder.set_layer(node.layer);
    if (!node.op->evaluate) {
      renamed[i] = builder.input(node.range, node.frac, node.name);
      continue;
    }
    if (node.op->name == "constant") {
      renamed[i] = builder.constant(node.numbers[0], node.frac);
      continue;
    }
    if (const std::optional<RoundedRelu> found = rounded_relu(graph, node)) {
      const IntegerId sum =
          builder.add_constant(renamed[static_cast<size_t>(found->source)], found->constant);
      renamed[i] = builder.relu(builder.node("floor", {sum}, node.numbers));
    } else {
      std::vector<IntegerId> inputs;
      for (const IntegerId input : node.inputs)
        inputs.push_back(renamed[static_cast<size_t>(input)]);
      renamed[i] = builder.node(node.op->name, std::move(inputs), node.numbers);
    }
    if (!node.name.empty()) builder.name(renamed[i], node.name);
  }
  for (const IntegerId output : graph.outputs) builder.output(renamed[static_cast<size_t>(output)]);
  return builder.finish();
}

IntegerGraph merge_equal(const IntegerGraph& graph) {
  IntegerGraph result = graph;
  using Key = std::pair<const IntegerOpRecord*,
                        std::pair<std::vector<IntegerId>, std::pair<std::vector<int64_t>, int>>>;
  std::map<Key, IntegerId> seen;
  std::vector<IntegerId> renamed(graph.nodes.size());
  for (size_t i = 0; i < result.nodes.size(); ++i) {
    IntegerNode& node = result.nodes[i];
    for (IntegerId& input : node.inputs) input = renamed[static_cast<size_t>(input)];
    renamed[i] = static_cast<IntegerId>(i);
    if (node.op->name == "input") continue;
    const auto [entry, fresh] =
        seen.try_emplace({node.op, {node.inputs, {node.numbers, node.frac}}}, renamed[i]);
    if (fresh) continue;
    renamed[i] = entry->second;
    // Both intervals hold.
    IntegerRange& range = result.at(entry->second).range;
    range = {std::max(range.low, node.range.low), std::min(range.high, node.range.high)};
  }
  for (IntegerId& output : result.outputs) output = renamed[static_cast<size_t>(output)];
  return without_dead_nodes(result);
}

IntegerGraph tables_where_cheaper(const IntegerGraph& graph, const IntegerGraph& optimized) {
  std::vector<std::string> names;
  for (const IntegerNode& node : optimized.nodes) names.push_back(node.name);
  std::map<std::string, double> alone;
  for (const BillEntry& entry : bill_of(optimized, names, ""))
    if (!entry.signal.empty()) alone[entry.signal] = entry.own_luts;
  std::vector<NeuronCone> chosen;
  for (const NeuronCone& cone : neuron_cones(graph)) {
    const auto own = alone.find(graph.at(cone.result).name);
    if (cone.bits == 0 || cone.bits > most_table_bits || own == alone.end()) continue;
    if (estimated_luts({.tables = neuron_table_luts(graph, cone)}) < own->second)
      chosen.push_back(cone);
  }
  return chosen.empty() ? graph : with_neuron_tables(graph, chosen);
}

namespace {

bool has_tables(const IntegerGraph& graph) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [](const IntegerNode& node) { return node.op->name == "table"; });
}

// The fewest tables of those that are no later than the sums were, else the earliest. Where chains
// take tables in, how many one after another is what saves tables and what makes sums late: there
// the smallest product of LUTs and the root of the levels.
IntegerGraph cheapest_chains(const IntegerGraph& graph, double delay_weight) {
  const double latest = estimate(graph).levels;
  std::optional<IntegerGraph> best;
  Estimate least;
  const bool takes_tables = has_tables(graph) && graph.nodes.size() <= few_nodes;
  const std::vector<int> lines =
      takes_tables ? std::vector<int>{4, 6, 3, 2, 1} : std::vector<int>{4};
  const auto worth = [](const Estimate& cost) {
    return cost.luts * std::sqrt(std::max(1.0, cost.levels));
  };
  for (const double times : {1.0, 2.0, 4.0, 8.0, 16.0})
    for (const int line : lines) {
      if (best && graph.nodes.size() > many_nodes) return std::move(*best);
      IntegerGraph next =
          with_carry_chains(graph, {.delay_weight = times * delay_weight, .tables_in_line = line});
      const Estimate cost = estimate(next);
      const bool in_time = cost.levels <= latest, was_in_time = least.levels <= latest;
      const bool better = takes_tables             ? worth(cost) < worth(least)
                          : in_time != was_in_time ? in_time
                          : in_time                ? cost.luts < least.luts
                                                   : cost.levels < least.levels;
      if (best && !better) continue;
      best = std::move(next);
      least = cost;
    }
  return std::move(*best);
}

// One way through the optimisers.
Optimized optimized_with(const IntegerGraph& graph, const CmvmOptions& search,
                         const OptimizeOptions& options, bool join) {
  Optimized result{graph, {}};
  const auto step = [&](const std::string& pass, IntegerGraph next) {
    OptimizeStep entry{pass, cost_of(result.graph), {}};
    verify(next);
    entry.after = cost_of(next);
    result.graph = std::move(next);
    result.trace.push_back(std::move(entry));
  };
  step("merge_rounding", merge_rounding(result.graph));
  if (join) step("join_tables", with_joined_tables(result.graph));
  const IntegerGraph plain = result.graph;
  const auto share = join ? share_plain_additions : share_additions;
  step("share_additions", share(plain, search));
  step("merge_equal", merge_equal(result.graph));
  const auto finish = [&] {
    if (options.carry_chains)
      step("carry_chains", cheapest_chains(result.graph, search.delay_weight));
    return std::move(result);
  };
  if (!options.tables) return finish();
  const IntegerGraph mixed = tables_where_cheaper(plain, result.graph);
  if (cost_of(mixed).table_luts <= cost_of(plain).table_luts) return finish();  // none was chosen
  IntegerGraph next = merge_equal(share(mixed, search));
  const Estimate now = estimate(result.graph), then = estimate(next);
  if (then.luts < now.luts && then.levels <= now.levels) step("neuron_tables", std::move(next));
  return finish();
}

}  // namespace

Optimized optimize(const IntegerGraph& graph, const OptimizeOptions& options) {
  // Large networks get one try of their layers and one weight: that is what seconds are spent on.
  const bool large = sharing_work(graph) > large_work;
  std::vector<double> weights = {8};
  if (options.delay_weight)
    weights = {*options.delay_weight};
  else if (options.effort > (large ? 1 : 0))
    weights.push_back(12);
  const double budget = large ? 5e5 : 1.6e6;
  std::optional<Optimized> best;
  double least = INFINITY;
  const auto consider = [&](double weight, bool join) {
    Optimized next =
        optimized_with(graph, {options.effort, options.seed, weight, budget}, options, join);
    const Estimate cost = estimate(next.graph);
    const double worth = cost.luts * std::sqrt(std::max(1.0, cost.levels));
    if (best && worth >= least) return;
    least = worth;
    best = std::move(next);
  };
  for (const double weight : weights) consider(weight, false);
  // Chains take tables in for nothing: joined, and not added up by other tables.
  if (options.carry_chains && has_tables(graph))
    for (const double weight : weights) consider(weight, true);
  return std::move(*best);
}

}  // namespace mase
