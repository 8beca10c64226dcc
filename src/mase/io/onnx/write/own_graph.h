// SPDX-License-Identifier: Apache-2.0
// Files of ours say, in their metadata, which graph they were written from: nodes of ONNX leave out
// what changes no value (how an argument was given, dropout, a ReLU in place, the names of
// functions). Nothing of it is believed: the graph is written once more, and only if that gives the
// nodes and numbers that stand in the file is it what the file means.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mase/io/onnx/file/model.h"
#include "mase/io/onnx/file/tensor.h"
#include "mase/io/onnx/write/export.h"
#include "mase/ir/graph.h"

namespace mase::onnx {

// Where a tensor of a graph, or a part of it, stands in the file.
struct WrittenPart {
  std::string initializer;
  TensorView view = {};
};

// Puts the description into the model's metadata; nothing where the file has not all of a tensor of
// the graph.
void describe_graph(const Graph& graph, const ExportOptions& options,
                    const std::map<std::string, std::vector<WrittenPart>>& tensors, Model& model);

// The graph that a model was written from; nothing if it does not say, or if its nodes say
// something else: `why` then tells.
std::optional<Graph> own_graph(const Model& model, ExternalFiles& files, const std::string& place,
                               MemoryBudget& budget, std::string& why);

constexpr const char* graph_property = "mase.graph";  // in the model's metadata
constexpr const char* own_producer = "mase";

}  // namespace mase::onnx
