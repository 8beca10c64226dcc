// SPDX-License-Identifier: Apache-2.0
// Networks with more or fewer channels. A layer that multiplies by a weight is given another number
// of outputs, and every layer behind it follows from its shapes. A trained network stays useful:
// channels are repeated and their outgoing weights shared out, so that a wider network computes
// what the old one did (Net2Net: Chen, Goodfellow and Shlens, 2016); of a narrower one the channels
// with the largest weights are kept (Li et al., 2017).
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "mase/ir/graph.h"

namespace mase {

struct ResizeOptions {
  bool keep_weights = true;  // false: layers that change begin anew
  // Repeated channels differ by this share of their weights, so that training can tell them apart;
  // 0: the network computes exactly what it did, rounding aside.
  double noise = 0;
  uint64_t seed = 0;
};

// `outputs`: how many channels the results of these nodes shall have. An Error that names the layer
// where that cannot be: it multiplies by no weight, is quantised or pruned, works in groups, or its
// channels are the network's own outputs.
Graph resize_channels(const Graph& graph, const std::map<std::string, int64_t>& outputs,
                      const ResizeOptions& options = {});

// The channels of a node's result, where it multiplies by a weight; -1: it does not.
int64_t output_channels(const Graph& graph, const Node& node);

}  // namespace mase
