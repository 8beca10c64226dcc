// SPDX-License-Identifier: Apache-2.0
// What a graph will cost after synthesis, from the graph alone.
#pragma once

#include "mase/hardware/design.h"

namespace mase {

// What the calibration weighs, of a graph or of a part of one.
struct CostShare {
  double adder_bits = 0, adders = 0, tables = 0, other = 0;

  void add(const CostShare& more, double share) {
    adder_bits += share * more.adder_bits;
    adders += share * more.adders;
    tables += share * more.tables;
    other += share * more.other;
  }
};
CostShare cost_share(const IntegerGraph& graph, const IntegerNode& node);
double estimated_luts(const CostShare& cost);
double delay_of_levels(double levels);  // in nanoseconds: a model, not placed

}  // namespace mase
