// SPDX-License-Identifier: Apache-2.0
// What a graph will cost after synthesis, from the graph alone. The records' own models count
// tables; bits that nothing reads are left out, and the sums of a calibration on synthesised
// designs (docs/hardware.md) turn the counts into LUTs and levels of `synth_xilinx -family xcup`.
#include "mase/hardware/cost/estimate.h"

#include <algorithm>
#include <cmath>

namespace mase {
namespace {

// Fitted to Yosys 0.23 (docs/hardware.md).
constexpr double luts_per_sum_bit = 1.023, luts_per_passed_bit = 0.393, luts_per_adder = -0.263;
constexpr double luts_per_other = 0.485, luts_per_table = 1;
// A level of an UltraScale+ part with its routing: a model, not a placed figure.
constexpr double nanoseconds_per_level = 0.25;

CostShare share_of(const GraphCost& cost) {
  return {cost.adder_luts, static_cast<double>(cost.adders), cost.table_luts,
          cost.luts - static_cast<double>(cost.adder_bits) - cost.table_luts};
}

// The largest error of designs with such operations (bench/estimate_yosys.py), rounded up.
double error_with(const IntegerGraph& graph) {
  double error = 0.15;
  for (const IntegerNode& node : graph.nodes) {
    if (node.op->name == "select") error = std::max(error, 0.20);
    // Layers of tables were estimated 35 per cent low, neurons as tables 23.
    if (node.op->name == "table") error = std::max(error, 0.35);
  }
  return error;
}

}  // namespace

// Lowest and highest bits of a long chain often share tables with their neighbours; short chains,
// of values of few bits, hardly do.
double chain_luts(double bits) {
  return bits <= 0 ? 0 : std::max(0.79 * bits + 0.25, 1.067 * bits - 1.94);
}

// A bit of the chain that only one operand has passes through it; a sign is had by all bits above.
double adder_luts(const IntegerGraph& graph, const IntegerNode& node) {
  const IntegerContext context = context_of(graph, node);
  const int64_t bits = std::llround(node.op->luts(context));
  if (bits <= 0) return 0;
  if (node.op->cells) return static_cast<double>(bits);  // every one of them is an instance's
  const int64_t first =
      node.op->name == "subtract" ? node.numbers[1] : std::max(node.numbers[0], node.numbers[1]);
  const auto has = [&](size_t k, int64_t bit) {
    const IntegerRange& range = context.ranges[k];
    return range.low != range.high && bit >= node.numbers[k] &&
           (range.is_signed() || bit < node.numbers[k] + range.width());
  };
  double luts = luts_per_adder;
  for (int64_t bit = first; bit < first + bits; ++bit) {
    const int operands = has(0, bit) + has(1, bit);
    luts += operands == 2 ? luts_per_sum_bit : operands == 1 ? luts_per_passed_bit : 0;
  }
  return luts;
}

CostShare cost_share(const IntegerGraph& graph, const IntegerNode& node, int bits) {
  if (is_adder(node)) return {.adder_luts = adder_luts(graph, node), .adders = 1};
  const double luts = node_luts(graph, node, bits);
  if (node.op->entries) return {.tables = luts};
  return {.other = luts};
}

double estimated_luts(const CostShare& cost) {
  return cost.adder_luts + luts_per_table * cost.tables + luts_per_other * cost.other;
}

double estimated_luts(const GraphCost& cost) { return estimated_luts(share_of(cost)); }

double delay_of_levels(double levels) { return levels * nanoseconds_per_level; }

Estimate estimate(const IntegerGraph& graph) {
  const GraphCost cost = cost_of(graph);
  Estimate result;
  result.luts = estimated_luts(cost);
  result.error = error_with(graph);
  result.levels = cost.levels;
  result.delay_ns = delay_of_levels(result.levels);
  result.registers = cost.registers;
  const std::vector<GraphCost> layers = cost_by_layer(graph);
  for (size_t i = 0; i < layers.size(); ++i)
    if (layers[i].luts > 0 || layers[i].levels > 0)
      result.layers.push_back(
          {graph.layers[i], estimated_luts(layers[i]), layers[i].levels, layers[i].adders});
  return result;
}

Estimate estimate(const Design& design) {
  return design.emitted.estimate ? *design.emitted.estimate : estimate(design.graph);
}

std::string stated_error(const Estimate& estimate) {
  if (estimate.error <= 0)  // none were compared
    return "for such numbers it was not compared with Yosys";
  return fmt::format("LUTs were within {:.0f} % of Yosys's on designs that nothing was fitted to",
                     100 * estimate.error);
}

Value to_value(const Estimate& estimate) {
  List layers;
  for (const Estimate::Layer& layer : estimate.layers)
    layers.push_back(Dict{{"name", layer.name},
                          {"luts", layer.luts},
                          {"levels", layer.levels},
                          {"adders", layer.adders}});
  Dict value{{"luts", estimate.luts}, {"luts_error", estimate.error}, {"from", estimate.method}};
  if (estimate.timed) {
    value.set("levels", estimate.levels);
    value.set("delay_ns", estimate.delay_ns);
    value.set("delay_is", "a model, not placed");
  }
  value.set("registers", estimate.registers);
  value.set("dsps", estimate.dsps);
  value.set("memory_bits", estimate.memory_bits);
  value.set("layers", std::move(layers));
  return value;
}

}  // namespace mase
