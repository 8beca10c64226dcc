// SPDX-License-Identifier: Apache-2.0
// What the inputs of a network's linear layers reach on given rows, feature by feature: how many
// bits they need before the point.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "mase/ir/graph.h"

namespace mase {

struct FeatureRange {
  float low = 0, high = 0;  // 0 is always within
};
using LayerRanges = std::map<std::string, std::vector<FeatureRange>>;  // by the layer's path

struct RangedLayer {
  std::string path;
  NodeId source;       // its input
  bool first = false;  // its codes are the hardware's inputs
};
// All linear layers, in order. One that is called twice is an error, and a network without any.
std::vector<RangedLayer> ranged_layers(const Graph& graph);

// On the first `most` of these rows.
LayerRanges feature_ranges(const Graph& graph, const std::vector<RangedLayer>& layers,
                           const Tensor& rows, int64_t most);

// Of a whole number, without its sign.
int magnitude_bits(double code);
// Of two's complement that holds both, or of plain binary where nothing is negative.
int width_of_codes(double low, double high);

}  // namespace mase
