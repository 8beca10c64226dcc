// SPDX-License-Identifier: Apache-2.0
#include "mase/run/hardware/feature_ranges.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "mase/engine/program.h"

namespace mase {

std::vector<RangedLayer> ranged_layers(const Graph& graph) {
  std::vector<RangedLayer> layers;
  for (const NodeId id : graph.order()) {
    const Module* const module = graph.module_of(graph.node(id));
    if (!module || module->op != "linear") continue;
    const auto known = [&](const RangedLayer& layer) {
      return layer.path == graph.node(id).target;
    };
    if (std::any_of(layers.begin(), layers.end(), known))
      throw Error(graph.node(id).target, "is called twice, with inputs of two ranges",
                  "give every call a layer of its own");
    layers.push_back({graph.node(id).target, graph.inputs_of(id).front(), layers.empty()});
  }
  if (layers.empty()) throw Error(graph.name, "has no linear layers");
  return layers;
}

LayerRanges feature_ranges(const Graph& graph, const std::vector<RangedLayer>& layers,
                           const Tensor& rows, int64_t most) {
  std::map<NodeId, std::vector<FeatureRange>> found;
  const auto look = [&](NodeId node, const float* values, int64_t count, int64_t features) {
    std::vector<FeatureRange>& ranges = found[node];
    ranges.resize(static_cast<size_t>(features));
    for (int64_t i = 0; i < count * features; ++i) {
      FeatureRange& range = ranges[static_cast<size_t>(i % features)];
      range.low = std::min(range.low, values[i]);
      range.high = std::max(range.high, values[i]);
    }
  };
  const int64_t count = std::min(most, rows.shape()[0]), width = rows.numel() / rows.shape()[0];
  Shape shape = rows.shape();
  shape[0] = count;
  const Tensor part =
      Tensor::of(shape, std::vector<float>(rows.data<float>(), rows.data<float>() + count * width));
  std::vector<NodeId> nodes;
  for (const RangedLayer& layer : layers) {
    if (graph.node(layer.source).kind == NodeKind::placeholder)
      look(layer.source, part.data<float>(), count, width);
    else if (std::find(nodes.begin(), nodes.end(), layer.source) == nodes.end())
      nodes.push_back(layer.source);
  }
  run_observed(graph, {part}, nodes, int64_t{1024}, [&](NodeId node, const Tensor& result) {
    look(node, result.data<float>(), result.shape()[0], result.numel() / result.shape()[0]);
  });
  LayerRanges ranges;
  for (const RangedLayer& layer : layers) ranges[layer.path] = found[layer.source];
  return ranges;
}

int magnitude_bits(double code) {
  return static_cast<int>(std::bit_width(static_cast<uint64_t>(std::min(std::fabs(code), 0x1p62))));
}

int width_of_codes(double low, double high) {
  const int bits = std::max(magnitude_bits(low < 0 ? low + 1 : 0), magnitude_bits(high));
  return low < 0 ? bits + 1 : bits;
}

}  // namespace mase
