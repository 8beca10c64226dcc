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

inline Graph network_of(const Shape& sample, const std::vector<Layer>& layers) {
  NetworkBuilder network("windows", {.sample_shape = sample, .outputs = 3, .seed = 5}, sample, 3);
  NodeId x = network.input();
  for (size_t i = 0; i < layers.size(); ++i)
    x = network.module(fmt::format("seq_blocks.{}", i), layers[i].op, layers[i].attributes, x);
  Graph graph = network.finish(x);
  PassContext context;
  context.original = &graph;
  Dict quantize{{"by", "type"}, {"default", Dict{{"config", Dict{{"name", "NA"}}}}}};
  for (const char* type : {"linear", "conv1d", "conv2d"})
    if (std::any_of(layers.begin(), layers.end(), [&](const Layer& l) { return l.op == type; }))
      quantize.set(type, Dict{{"config", same_keys("integer", {{"width", 6}, {"frac_width", 3}})}});
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
    list.emplace_back("sequence", network_of({4, 3}, {{"linear", {{"out_features", 5}}},
                                                      relu,
                                                      {"linear", {{"out_features", 2}}}}));
    return list;
  }();
  return all;
}

}  // namespace mase::test
