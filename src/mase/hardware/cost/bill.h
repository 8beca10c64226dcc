// SPDX-License-Identifier: Apache-2.0
// The bill of a design, neuron by neuron: what each result of a layer costs, when it is there, and
// on which line of the SystemVerilog it is written. What several neurons use is shared out evenly
// among them, so that the bill's sum is the design's estimate.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mase/base/value.h"
#include "mase/hardware/graph/integer_graph.h"

namespace mase {

struct BillEntry {
  std::string signal, layer;
  IntegerRange range;
  int frac = 0;
  int64_t inputs = 0;   // results and inputs of the network that it reads
  int64_t adders = 0;   // on the way from them, shared ones included
  double luts = 0;      // its share
  double own_luts = 0;  // of that, what no other neuron uses
  double levels = 0;    // when its last bit is there, since the last register
  int64_t line = 0;     // in the text; 0: not there
};

// `signals`: the names of all nodes in `text`.
std::vector<BillEntry> bill_of(const IntegerGraph& graph, const std::vector<std::string>& signals,
                               const std::string& text);
Value to_value(const std::vector<BillEntry>& bill);

}  // namespace mase
