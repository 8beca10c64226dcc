// SPDX-License-Identifier: Apache-2.0
// What a graph will cost after synthesis, from the graph alone. The records' own models count
// tables; bits that nothing reads are left out, and the sums of a calibration on synthesised
// designs (docs/hardware.md) turn the counts into LUTs and levels of `synth_xilinx -family xcup`.
#include "mase/hardware/estimate.h"

#include <algorithm>

namespace mase {
namespace {

// Fitted to Yosys 0.23 (docs/hardware.md).
constexpr double luts_per_other = 0.485, luts_per_table = 1;
// A level of an UltraScale+ part with its routing: a model, not a placed figure.
constexpr double nanoseconds_per_level = 0.25;

CostShare share_of(const GraphCost& cost) {
  return {cost.adder_luts, static_cast<double>(cost.adders), cost.table_luts,
          cost.luts - static_cast<double>(cost.adder_bits) - cost.table_luts};
}

}  // namespace

// Lowest and highest bits of a long chain often share tables with their neighbours; short chains,
// of values of few bits, hardly do.
double adder_luts(double bits) {
  return bits <= 0 ? 0 : std::max(0.79 * bits + 0.25, 1.067 * bits - 1.94);
}

CostShare cost_share(const IntegerGraph& graph, const IntegerNode& node, int bits) {
  const double luts = node_luts(graph, node, bits);
  if (is_adder(node)) return {.adder_luts = adder_luts(luts), .adders = 1};
  if (node.op->entries) return {.tables = luts};
  return {.other = luts};
}

double estimated_luts(const CostShare& cost) {
  return cost.adder_luts + luts_per_table * cost.tables + luts_per_other * cost.other;
}

double delay_of_levels(double levels) { return levels * nanoseconds_per_level; }

Estimate estimate(const IntegerGraph& graph) {
  const GraphCost cost = cost_of(graph);
  Estimate result;
  result.luts = estimated_luts(share_of(cost));
  result.levels = cost.levels;
  result.delay_ns = delay_of_levels(result.levels);
  result.registers = cost.registers;
  const std::vector<GraphCost> layers = cost_by_layer(graph);
  for (size_t i = 0; i < layers.size(); ++i)
    if (layers[i].luts > 0 || layers[i].levels > 0)
      result.layers.push_back({graph.layers[i], estimated_luts(share_of(layers[i])),
                               layers[i].levels, layers[i].adders});
  return result;
}

Estimate estimate(const Design& design) {
  return design.emitted.estimate ? *design.emitted.estimate : estimate(design.graph);
}

Value to_value(const Estimate& estimate) {
  List layers;
  for (const Estimate::Layer& layer : estimate.layers)
    layers.push_back(Dict{{"name", layer.name},
                          {"luts", layer.luts},
                          {"levels", layer.levels},
                          {"adders", layer.adders}});
  Dict value{{"luts", estimate.luts}, {"from", estimate.method}};
  if (estimate.timed) {
    value.set("levels", estimate.levels);
    value.set("delay_ns", estimate.delay_ns);
    value.set("delay_is", "a model, not placed");
  }
  value.set("registers", estimate.registers);
  value.set("layers", std::move(layers));
  return value;
}

}  // namespace mase
