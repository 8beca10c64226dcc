// SPDX-License-Identifier: Apache-2.0
// What a graph will cost after synthesis, from the graph alone.
#pragma once

#include "mase/hardware/emit/design.h"

namespace mase {

// What the calibration weighs, of a graph or of a part of one.
struct CostShare {
  double adder_luts = 0, adders = 0, tables = 0, other = 0;

  void add(const CostShare& more, double share) {
    adder_luts += share * more.adder_luts;
    adders += share * more.adders;
    tables += share * more.tables;
    other += share * more.other;
  }
};
double adder_luts(const IntegerGraph& graph, const IntegerNode& node);
// The same of one that is not built yet, whose carry chain has so many bits.
double chain_luts(double bits);
// Of a node of which so many bits are read (optimize.h).
CostShare cost_share(const IntegerGraph& graph, const IntegerNode& node, int bits);
double estimated_luts(const CostShare& cost);
double estimated_luts(const GraphCost& cost);
double delay_of_levels(double levels);  // in nanoseconds: a model, not placed

}  // namespace mase
