// SPDX-License-Identifier: Apache-2.0
// Small networks with windows, pools and sequences that tests of hardware share.
#pragma once

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "hardware/variants.h"
#include "mase/models/network_builder.h"

namespace mase::test {

struct Layer {
  std::string op;
  Dict attributes;
};

// A layer "add" adds what so many layers before it gave ("back"; before the first: the input) to
// what the last one gave.
inline Graph network_of(const Shape& sample, const std::vector<Layer>& layers) {
  NetworkBuilder network("windows", {.sample_shape = sample, .outputs = 3, .seed = 5}, sample, 3);
  std::vector<NodeId> given = {network.input()};
  for (size_t i = 0; i < layers.size(); ++i) {
    const Layer& layer = layers[i];
    if (layer.op == "add")
      given.push_back(network.function(
          "add",
          {given.back(),
           given[given.size() - 1 - static_cast<size_t>(layer.attributes.at("back").as_int())]}));
    else
      given.push_back(network.module(fmt::format("seq_blocks.{}", i), layer.op, layer.attributes,
                                     given.back()));
  }
  Graph graph = network.finish(given.back());
  PassContext context;
  context.original = &graph;
  Dict quantize{{"by", "type"}, {"default", Dict{{"config", Dict{{"name", "NA"}}}}}};
  for (const char* type : {"linear", "conv1d", "conv2d"})
    if (std::any_of(layers.begin(), layers.end(), [&](const Layer& l) { return l.op == type; }))
      quantize.set(type, Dict{{"config", same_keys("integer", {{"width", 6}, {"frac_width", 3}})}});
  if (std::any_of(layers.begin(), layers.end(),
                  [](const Layer& l) { return l.attributes.contains("rounded"); }))
    quantize.set(
        "add", Dict{{"config",
                     Dict{{"name", "integer"}, {"data_in_width", 6}, {"data_in_frac_width", 3}}}});
  run_passes(graph, pass_calls(Value(Dict{{"quantize", quantize}}), "passes"), context);
  return graph;
}

// By what they have.
inline const std::vector<std::pair<std::string, Graph>>& plane_networks() {
  static const std::vector<std::pair<std::string, Graph>> all = [] {
    const Layer relu{"relu", {}}, flat{"flatten", {}}, head{"linear", {{"out_features", 3}}};
    const auto conv = [](int64_t in, int64_t out, Dict more) {
      Dict attributes{{"in_channels", in}, {"out_channels", out}};
      for (const auto& [key, value] : more) attributes.set(key, value);
      return Layer{"conv2d", attributes};
    };
    std::vector<std::pair<std::string, Graph>> list;
    list.emplace_back("conv, max, conv",
                      network_of({1, 6, 6}, {conv(1, 2, {{"kernel_size", 3}}),
                                             relu,
                                             {"max_pool2d", {{"kernel_size", 2}}},
                                             conv(2, 3, {{"kernel_size", 2}}),
                                             flat}));
    list.emplace_back(
        "padding, stride, groups",
        network_of({2, 5, 4},
                   {conv(2, 4, {{"kernel_size", 3}, {"padding", 1}, {"stride", 2}, {"groups", 2}}),
                    relu, flat, head}));
    list.emplace_back("dilation, means",
                      network_of({1, 7, 7}, {conv(1, 2, {{"kernel_size", 2}, {"dilation", 3}}),
                                             {"avg_pool2d", {{"kernel_size", 2}}},
                                             flat,
                                             head}));
    list.emplace_back(
        "time series",
        network_of(
            {2, 12},
            {{"conv1d",
              {{"in_channels", 2}, {"out_channels", 3}, {"kernel_size", 3}, {"padding", "same"}}},
             relu,
             {"max_pool1d", {{"kernel_size", 3}}},
             {"adaptive_avg_pool1d", {{"output_size", 1}}},
             flat,
             head}));
    list.emplace_back(
        "depthwise, three channels",
        network_of({3, 5, 6}, {conv(3, 3, {{"kernel_size", 3}, {"padding", 1}, {"groups", 3}}),
                               relu,
                               conv(3, 2, {{"kernel_size", 1}}),
                               {"max_pool2d", {{"kernel_size", 3}, {"stride", 2}, {"padding", 1}}},
                               flat,
                               head}));
    list.emplace_back(
        "no layer on a vector",
        network_of({2, 4, 5}, {conv(2, 3, {{"kernel_size", 2}, {"stride", 3}}), relu}));
    // The skip has what the layer's own input rounds away.
    list.emplace_back("residual block",
                      network_of({1, 6, 6}, {conv(1, 2, {{"kernel_size", 3}, {"padding", 1}}),
                                             relu,
                                             conv(2, 2, {{"kernel_size", 3}, {"padding", 1}}),
                                             relu,
                                             conv(2, 2, {{"kernel_size", 3}, {"padding", 1}}),
                                             {"add", {{"back", 3}}},
                                             relu,
                                             {"max_pool2d", {{"kernel_size", 2}}},
                                             flat,
                                             head}));
    list.emplace_back("two skips",
                      network_of({2, 4, 4}, {conv(2, 2, {{"kernel_size", 1}}),
                                             conv(2, 2, {{"kernel_size", 3}, {"padding", 1}}),
                                             {"add", {{"back", 1}}},
                                             relu,
                                             conv(2, 2, {{"kernel_size", 1}}),
                                             {"add", {{"back", 4}, {"rounded", true}}},
                                             flat,
                                             head}));
    list.emplace_back("residual vectors", network_of({5}, {{"linear", {{"out_features", 4}}},
                                                           relu,
                                                           {"linear", {{"out_features", 4}}},
                                                           relu,
                                                           {"add", {{"back", 2}}},
                                                           head}));
    list.emplace_back("sequence", network_of({4, 3}, {{"linear", {{"out_features", 5}}},
                                                      relu,
                                                      {"linear", {{"out_features", 2}}}}));
    return list;
  }();
  return all;
}

}  // namespace mase::test
