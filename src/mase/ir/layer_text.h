// SPDX-License-Identifier: Apache-2.0
// How layers are named and printed: MASE's type and op of a node, its class (a quantised Linear is
// a LinearInteger), and the line PyTorch prints for it. One place, so that every report agrees.
#pragma once

#include <string>
#include <vector>

#include "mase/ir/graph.h"
#include "mase/ir/op.h"

namespace mase {

std::string mase_type(const Graph& graph, const Node& node);  // "module_related_func"
std::string mase_op(const Graph& graph, const Node& node);    // "linear"

// The op a node calls; null for placeholders, attributes and outputs.
const OpRecord* op_of(const Graph& graph, const Node& node);

// "Linear", "LinearInteger"; functions: "relu", "relu_integer"; others: their target.
std::string class_text(const Graph& graph, const Node& node);
// "LinearInteger(in_features=16, out_features=5, bias=True)"; others as class_text.
std::string layer_text(const Graph& graph, const Node& node);
std::string module_text(const Module& module);
// MASE's name for it: what a node calls.
inline std::string node_target(const Graph& graph, const Node& node) {
  return layer_text(graph, node);
}

// Names of the tensor inputs of a node in metadata: data_in_0, data_in_1, ...
std::string input_name(size_t index);

// "integer 8/4" for a quantised operand, "float32" for one that is not.
std::string operand_text(const Quantizer* quantizer);
// The format of a node on one line: "data_in integer 8/4, weight integer 8/4".
std::string format_text(const Quantization& quantization);

}  // namespace mase
