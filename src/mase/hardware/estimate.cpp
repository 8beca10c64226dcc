// SPDX-License-Identifier: Apache-2.0
// What a graph will cost after synthesis, from the graph alone. The records' own models count
// tables; bits that nothing reads are left out, and the sums of a calibration on synthesised
// designs (docs/hardware.md) turn the counts into LUTs and levels of `synth_xilinx -family xcup`.
#include <algorithm>

#include "mase/hardware/design.h"

namespace mase {
namespace {

// Fitted to Yosys 0.23 on four designs (docs/hardware.md). An adder's lowest and highest bits often
// share tables with their neighbours.
constexpr double luts_per_adder_bit = 1.1, luts_less_per_adder = 2, luts_per_other = 0.5;
// A level of an UltraScale+ part with its routing: a model, not a placed figure.
constexpr double nanoseconds_per_level = 0.25;

}  // namespace

Estimate estimate(const IntegerGraph& graph) {
  const auto fitted = [](const GraphCost& cost) {
    const double adders = static_cast<double>(cost.adder_bits);
    return std::max(0.0, luts_per_adder_bit * adders -
                             luts_less_per_adder * static_cast<double>(cost.adders) +
                             luts_per_other * (cost.luts - adders));
  };
  const GraphCost cost = cost_of(graph);
  Estimate result;
  result.luts = fitted(cost);
  result.levels = cost.levels;
  result.delay_ns = result.levels * nanoseconds_per_level;
  result.registers = cost.registers;
  const std::vector<GraphCost> layers = cost_by_layer(graph);
  for (size_t i = 0; i < layers.size(); ++i)
    if (layers[i].luts > 0 || layers[i].levels > 0)
      result.layers.push_back(
          {graph.layers[i], fitted(layers[i]), layers[i].levels, layers[i].adders});
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
  Dict value{{"luts", estimate.luts}};
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
