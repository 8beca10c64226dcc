// SPDX-License-Identifier: Apache-2.0
// From a quantised network to integers. What lies before the first rounding (a batch norm on the
// features) stays in software: the hardware's inputs are the codes of that first format. From there
// on everything must be exact; what cannot be is refused with the node's name and what to change.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "mase/hardware/graph/builder.h"
#include "mase/ir/graph.h"

namespace mase {

struct LoweredNetwork {
  IntegerGraph graph;
  // Where inputs come from: features of this node's result, rounded by this quantiser.
  struct Source {
    NodeId node;
    QuantizerPtr quantizer;
    std::vector<int> fracs;  // of the codes, one per feature
    bool sign_bits = false;  // one bit each: 0 is -1, 1 is +1
  };
  std::vector<Source> sources;
  std::vector<std::string> software;  // nodes that stay in software
  // Every lowered node's features in the integer graph, in the network's order; features that
  // nothing needs are left out with their node.
  std::vector<std::pair<NodeId, std::vector<IntegerId>>> values;
  // For every sum of products whether single precision computes it without rounding, whatever the
  // order: all partial sums stay below 2^24 steps.
  struct Exactness {
    std::string node;
    bool exact = false;
    int bits = 0;
  };
  std::vector<Exactness> float32;
  // Features, of those that something needs, rounded to formats that wrap. `value` is the integer
  // before it wraps; those that provably fit, by their intervals, have none.
  struct Wrapping {
    std::string node;
    int64_t feature = 0;
    IntegerId value = -1;
    IntegerRange format = {};
  };
  std::vector<Wrapping> wrapping;
};

LoweredNetwork lower(const Graph& graph);

// Layers with products that are not quantised: hardware begins behind them, and what it costs is
// not the network's.
std::vector<std::string> layers_in_software(const Graph& graph);

// Codes of the sources' values, [rows][features...] each, as rows of the integer graph's inputs.
std::vector<int64_t> input_codes(const LoweredNetwork& network, const std::vector<Tensor>& values);
// Results of the integer graph as the numbers they mean, [rows][outputs].
std::vector<double> output_values(const IntegerGraph& graph, const std::vector<int64_t>& codes);

}  // namespace mase
