// SPDX-License-Identifier: Apache-2.0
// Scales that move between layers and change nothing in real arithmetic: what makes a value is
// divided by s, channel by channel, and the products that take it have the columns of their
// weights multiplied by s.
//   norm, or product -> (relu, pooling, dropout, times another value) -> products
// Which layers carry a scale through is found by trying, not by their names. The one driver of
// smoothquant, awq and cross_layer_equalisation: each says which places it wants, and the scales.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mase/passes/calibration.h"

namespace mase {

struct ScalingSite {
  NodeId producer = -1;           // a layer whose parameters' rows are the channels
  NodeId source = -1;             // what the products take: the producer, or what follows it
  std::vector<NodeId> consumers;  // all its users
  int64_t channels = 0;
  int64_t repeat = 1;      // columns of a consumer that one channel became (flatten)
  bool from_norm = false;  // the producer is no product
};

// Places in the order of the graph; `left` gets those where it cannot be done, with reasons.
std::vector<ScalingSite> scaling_sites(const Graph& graph, Dict& left);

// For every channel of a site the largest of, or the mean over, a statistic of its columns.
std::vector<double> channel_statistic(const ScalingSite& site, const Graph& graph, NodeId consumer,
                                      const std::vector<double>& columns, bool largest);
// The largest magnitude that a channel has in the weights of all consumers.
std::vector<double> consumer_ranges(const ScalingSite& site, const Graph& graph);
// The largest magnitude of the producer's weights for a channel.
std::vector<double> producer_ranges(const ScalingSite& site, const Graph& graph);
// The weight of a consumer with its columns multiplied by scales of channels.
Tensor scaled_columns(const ScalingSite& site, const Graph& graph, NodeId consumer,
                      const std::vector<double>& scales, bool inverse = false);
// What training finds of the weights' formats (steps), anew from the weights as they are now.
void refit(Module& module);
void apply_scales(Graph& graph, const ScalingSite& site, const std::vector<double>& scales);

// Of the consumers of a site in their order, of the network without formats.
struct SiteInputs {
  std::vector<std::shared_ptr<const ProductInputs>> of = {};
  int threads = 1;
};

struct ScalingMethod {
  std::string name;
  std::function<bool(const ScalingSite& site)> wants;
  // Scales of a site, all above 0. A `note` is printed beside the layer.
  std::function<std::vector<double>(const Graph& graph, const ScalingSite& site,
                                    const SiteInputs& inputs, std::string& note)>
      scales;
  bool needs_inputs = true;
};
Schema scaling_method_schema(std::vector<Field> own = {});
PassResult scale_channels(Graph& graph, const Value& args, PassContext& context,
                          const ScalingMethod& method);

}  // namespace mase
