// SPDX-License-Identifier: Apache-2.0
// Quantised networks for tests of hardware: the jet networks in every kind of format.
#pragma once

#include <string>
#include <vector>

#include "mase/base/random.h"
#include "mase/models/model.h"
#include "mase/passes/pass.h"

namespace mase::test {

// Keys for the three operands of a linear layer.
inline Dict same_keys(const std::string& format, const Dict& keys) {
  Dict config{{"name", format}};
  for (const char* operand : {"data_in", "weight", "bias"})
    for (const auto& [key, value] : keys) config.set(fmt::format("{}_{}", operand, key), value);
  return config;
}

inline const std::vector<std::string>& variant_names() {
  static const std::vector<std::string> names = {
      "8/4",     "6/3",          "4/2", "per_channel", "per_element", "binary",
      "ternary", "power_of_two", "log", "minifloat",   "mxint",       "mxfp"};
  return names;
}

// The config of a linear layer with this weight [out, in].
inline Dict variant_config(const std::string& variant, const Shape& weight, uint64_t seed) {
  if (variant == "8/4") return same_keys("integer", {{"width", 8}, {"frac_width", 4}});
  if (variant == "6/3") return same_keys("integer", {{"width", 6}, {"frac_width", 3}});
  if (variant == "4/2") return same_keys("integer", {{"width", 4}, {"frac_width", 2}});
  if (variant == "binary") return same_keys("binary", {{"bipolar", true}});
  if (variant == "ternary") {
    Dict config = same_keys("ternary", {{"threshold", 0.125}});
    config.set("data_in_threshold", 0.5);
    return config;
  }
  if (variant == "power_of_two" || variant == "log")
    return same_keys(variant, {{"width", 4}, {"exponent_bias", 5}});
  if (variant == "minifloat")
    return same_keys("minifloat_ieee", {{"width", 6}, {"exponent_width", 3}});
  if (variant == "mxint") {
    Dict config = same_keys("mxint", {{"width", 5}, {"block_size", 8}, {"scale_bits", 3}});
    config.set("weight_scale_bits", 4);
    return config;
  }
  if (variant == "mxfp")
    return same_keys(
        "mxfp", {{"exponent_width", 2}, {"frac_width", 1}, {"block_size", 8}, {"scale_bits", 3}});
  // Widths that differ: by output channel of weights and bias, by feature of the input.
  Random random(seed, "widths");
  const auto widths = [&](int64_t count, int64_t least) {
    List list;
    for (int64_t i = 0; i < count; ++i)
      list.push_back(least + static_cast<int64_t>(random.below(5)));
    return list;
  };
  const int64_t out = weight[0], in = weight[1];
  Dict config = same_keys("integer", {{"width", 6}, {"frac_width", 3}});
  if (variant == "per_channel") {
    config.set("weight_granularity", "row");
    config.set("weight_width", widths(out, 3));
    config.set("bias_granularity", "element");
    config.set("bias_width", widths(out, 4));
    return config;
  }
  config.set("weight_granularity", "element");
  config.set("weight_width", widths(out * in, 0));  // width 0 prunes
  config.set("data_in_granularity", "row");
  config.set("data_in_width", widths(in, 0));
  config.set("data_in_overflow", "wrap");
  config.set("data_in_rounding", "half_up");
  return config;
}

// Batch norms folded, every linear layer in the variant's format.
inline Graph in_variant(const Graph& original, const std::string& variant, uint64_t seed = 1) {
  Graph graph = original;
  PassContext context;
  context.original = &original;
  run_passes(graph, pass_calls(Value(Dict{{"fuse_batch_norm", Dict{}}}), "passes"), context);
  Dict quantize{{"by", "name"}, {"default", Dict{{"config", Dict{{"name", "NA"}}}}}};
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const Module* module = graph.module_of(node);
    if (module && module->op == "linear")
      quantize.set(node.name,
                   Dict{{"config", variant_config(variant, module->find("weight")->shape(),
                                                  seed + static_cast<uint64_t>(id))}});
  }
  run_passes(graph, pass_calls(Value(Dict{{"quantize", quantize}}), "passes"), context);
  return graph;
}

}  // namespace mase::test
