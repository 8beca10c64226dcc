// SPDX-License-Identifier: Apache-2.0
// Networks written as ONNX and read again, for the tests of it.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>

#include "mase/base/text.h"
#include "mase/io/onnx/file/read_model.h"
#include "mase/io/onnx/file/write_model.h"
#include "mase/io/onnx/read/import.h"
#include "mase/io/onnx/write/export.h"
#include "mase/io/onnx/write/own_graph.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/op.h"
#include "mase/models/model.h"
#include "support/support.h"

namespace mase {

inline onnx::Model parsed(const std::shared_ptr<const std::string>& bytes, MemoryBudget& budget) {
  return onnx::read_model(std::as_bytes(std::span(*bytes)), bytes, "written.onnx", budget);
}

inline onnx::Model written(const Graph& graph, const onnx::ExportOptions& options) {
  MemoryBudget budget({}, 0);
  return parsed(
      std::make_shared<std::string>(onnx::model_bytes(onnx::export_graph(graph, options))), budget);
}

inline onnx::Imported imported(const onnx::Model& model) {
  MemoryBudget budget({}, 0);
  onnx::ExternalFiles nowhere("");
  return onnx::import_model(model, nowhere, "written.onnx", budget);
}

// There and back, with the memory that a file of this size has.
inline onnx::Imported read_again(const Graph& graph, const onnx::ExportOptions& options) {
  const auto bytes =
      std::make_shared<std::string>(onnx::model_bytes(onnx::export_graph(graph, options)));
  MemoryBudget budget({}, bytes->size());
  onnx::ExternalFiles nowhere("");
  return onnx::import_model(parsed(bytes, budget), nowhere, "written.onnx", budget);
}

// Layers with these keys for each operand that they have.
inline Graph quantised(Graph graph, const std::string& format, const Dict& keys,
                       const std::vector<std::string>& operands = {"data_in", "weight", "bias"}) {
  for (auto& [path, module] : graph.modules()) {
    if (module.op != "linear" && module.op != "conv2d") continue;
    Dict config{{"name", format}};
    for (const std::string& operand : operands)
      for (const auto& [key, value] : keys) config.set(operand + "_" + key, value);
    const OpRecord& op = find_op(module.op);
    Problems problems;
    module.quantization =
        parse_quantization(config, {op.operands, {}, op.unsigned_operands}, path, problems);
    problems.throw_if_any();
  }
  return graph;
}

inline Graph quantised(const Graph& graph) {
  return quantised(graph, "integer", {{"width", 8}, {"frac_width", 5}});
}

// A line for each node, layer and tensor.
inline std::vector<std::string> lines_of(const Graph& graph) {
  std::vector<std::string> lines = split(graph.text(), '\n');
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    lines.push_back(fmt::format("{} {} {} {}", node.name, layer_text(graph, node),
                                python_repr(graph.quantization_of(node).config),
                                format_text(graph.quantization_of(node))));
  }
  for (const auto& [path, module] : graph.modules())
    lines.push_back(fmt::format("{} {} {}", path, module.op, python_repr(module.attributes)));
  for (const auto& [name, tensor] : state_dict(graph))
    lines.push_back(
        fmt::format("{} {} {}", name, dtype_name(tensor.dtype()), shape_text(tensor.shape())));
  return lines;
}

inline void expect_same(const Graph& graph, const Graph& again) {
  const std::vector<std::string> ours = lines_of(graph), theirs = lines_of(again);
  if (ours != theirs) {
    std::string lost, made;
    for (const std::string& line : ours)
      if (!std::count(theirs.begin(), theirs.end(), line)) lost += "- " + line + "\n";
    for (const std::string& line : theirs)
      if (!std::count(ours.begin(), ours.end(), line)) made += "+ " + line + "\n";
    constexpr size_t most = 3000;
    ADD_FAILURE() << lost.substr(0, most) << made.substr(0, most);
    return;
  }
  const TensorTable before = state_dict(graph), after = state_dict(again);
  for (size_t i = 0; i < before.size(); ++i)
    EXPECT_EQ(std::memcmp(before[i].second.raw(), after[i].second.raw(), before[i].second.bytes()),
              0)
        << before[i].first;
}

// Parameters that stand in the file in parts (the joint projection), or in another shape.
inline constexpr const char* unusual_layers = R"(
input = [6, 4]
[[layers]]
name = "attention"
type = "MultiheadAttention"
num_heads = 2
batch_first = true
inputs = ["x", "x", "x"]
[[layers]]
name = "norm"
type = "GroupNorm"
num_groups = 3
[[layers]]
name = "slope"
type = "PReLU"
num_parameters = 6
[[layers]]
name = "last"
type = "Linear"
out_features = 3
)";

inline Graph unusual_network() {
  const std::string path = test::temporary_folder() + "/unusual.toml";
  test::write(path, unusual_layers);
  Graph graph = make_model(path, {.seed = 3});
  int64_t next = 1;  // other numbers than the ones and zeros that norms begin with
  for (const char* layer : {"attention", "norm", "slope"})
    for (auto& [name, tensor] : graph.modules().at(layer).parameters)
      for (int64_t i = 0; i < tensor.numel(); ++i)
        tensor.mutable_data<float>()[i] = 0.125f * static_cast<float>(next++);
  return graph;
}

// Two thirds of a layer's weights, one of them zero by chance.
inline Graph pruned_network() {
  Graph graph = make_model("jsc-toy", {.seed = 3});
  Module& module = graph.modules().at("seq_blocks.2");
  Tensor& weight = *module.find("weight");
  Tensor mask(weight.shape());
  for (int64_t i = 0; i < mask.numel(); ++i) {
    mask.mutable_data<float>()[i] = i % 3 != 0;
    if (i % 3 == 0) weight.mutable_data<float>()[i] = 0;
  }
  weight.mutable_data<float>()[1] = 0;
  module.masks.emplace_back("weight", mask);
  return graph;
}

}  // namespace mase
