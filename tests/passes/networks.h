// SPDX-License-Identifier: Apache-2.0
// Networks for the tests of passes: golden ones, and random ones with branches, shared modules and
// functions.
#pragma once

#include <map>
#include <string>

#include "mase/base/random.h"
#include "mase/io/networks/checkpoint.h"
#include "mase/ir/graph.h"
#include "mase/ir/op.h"
#include "mase/models/model.h"
#include "support/support.h"

namespace mase::test {

struct GoldenNetwork {
  Graph graph;
  Tensor x, labels, logits;
};

inline GoldenNetwork golden_network(const std::string& name) {
  GoldenNetwork golden;
  golden.graph = make_model(name);
  const std::string path = golden_path("torch/" + name + ".ckpt");
  load_into(golden.graph, load_checkpoint(path), path);
  for (const auto& [key, tensor] :
       load_safetensors(golden_path("torch/" + name + ".expected.safetensors"))) {
    if (key == "x") golden.x = tensor;
    if (key == "y") golden.labels = tensor.to(DType::i32);
    if (key == "logits") golden.logits = tensor;
  }
  return golden;
}

// One linear layer with these weights.
inline Graph one_layer(const std::vector<float>& weights, int64_t out, int64_t in) {
  Graph graph;
  graph.name = "one";
  const NodeId x = graph.add_placeholder("x", {in});
  Module linear = make_module("linear", Dict{{"in_features", in}, {"out_features", out}}, 0, "fc");
  *linear.find("weight") = Tensor::of({out, in}, weights);
  graph.add_output({graph.add_module("fc", linear, {x})});
  return graph;
}

// Parameters and running statistics that are not the constants of a fresh network.
inline void shake(Graph& graph, Random& random) {
  for (auto& [path, module] : graph.modules())
    for (TensorTable* table : {&module.parameters, &module.buffers})
      for (auto& [name, tensor] : *table) {
        if (tensor.dtype() != DType::f32) continue;
        float* values = tensor.mutable_data<float>();
        for (int64_t i = 0; i < tensor.numel(); ++i)
          values[i] = name == "running_var" ? static_cast<float>(0.5 + random.uniform())
                                            : static_cast<float>(random.normal() * 0.4);
      }
}

// A network of 3 to 14 steps on [N, width] rows: layers, activations as modules and functions,
// sums and products of earlier results, and layers called a second time.
inline Graph random_graph(uint64_t seed) {
  Random random(seed, "graph");
  Graph graph;
  graph.name = "random";
  const int64_t width = 2 + static_cast<int64_t>(random.below(7));
  std::vector<NodeId> values = {graph.add_placeholder("x", {width})};  // all [N, width]
  std::vector<std::string> shared;
  const uint64_t steps = 3 + random.below(12);
  const auto pick = [&] { return values[random.below(values.size())]; };
  for (uint64_t step = 0; step < steps; ++step) {
    const std::string path = fmt::format("blocks.{}", step);
    const auto add = [&](const char* op, Value attributes) {
      values.push_back(graph.add_module(path, make_module(op, attributes, seed, path), {pick()}));
    };
    switch (random.below(9)) {
      case 0:
      case 1:
        add("linear",
            Dict{{"in_features", width}, {"out_features", width}, {"bias", random.below(4) > 0}});
        shared.push_back(path);
        if (random.below(2)) {  // a batch-norm right behind it
          const std::string norm = path + "_norm";
          values.push_back(graph.add_module(
              norm, make_module("batch_norm1d", Dict{{"num_features", width}}, seed, norm),
              {values.back()}));
        }
        break;
      case 2:
        add("relu", Dict());
        break;
      case 3:
        add("dropout", Dict());
        break;
      case 4:
        add("batch_norm1d", Dict{{"num_features", width}});
        break;
      case 5:
        values.push_back(
            graph.call_function("add", {Argument::node(pick()), Argument::node(pick())}));
        break;
      case 6:
        values.push_back(
            graph.call_function("mul", {Argument::node(pick()), Argument::node(pick())}));
        break;
      case 7:
        values.push_back(graph.call_function("relu", {Argument::node(pick())}));
        break;
      default:
        if (shared.empty())
          add("relu", Dict());
        else
          values.push_back(
              graph.call_module(shared[random.below(shared.size())], {Argument::node(pick())}));
    }
  }
  graph.add_output({values.back()});
  shake(graph, random);
  return graph;
}

}  // namespace mase::test
