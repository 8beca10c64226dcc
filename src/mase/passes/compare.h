// SPDX-License-Identifier: Apache-2.0
// Two graphs side by side: which nodes changed, and what that did to weights and outputs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/ir/graph.h"
#include "mase/passes/pass.h"

namespace mase {

// One node of the original beside what became of it.
struct NodePair {
  const Node* before = nullptr;
  const Node* after = nullptr;  // null: removed
  std::string old_class, new_class;
  bool changed = false;
};
std::vector<NodePair> pair_nodes(const Graph& original, const Graph& transformed);

// The original graph of a context, or an Error that says how to give one.
const Graph& original_graph(const PassContext& context, const std::string& pass);

// Sums from which all error figures follow; values arrive in pieces.
struct ErrorSums {
  int64_t count = 0;
  double largest = 0, absolute = 0, squares = 0, signal = 0, other = 0, product = 0;

  void add(const float* before, const float* after, int64_t n);
  double mean() const { return count > 0 ? absolute / static_cast<double>(count) : 0; }
  std::optional<double> sqnr_db() const;  // nothing when there is no error, or no signal
  std::optional<double> cosine() const;
};

struct LayerError {
  NodeId node = -1;
  std::optional<ErrorSums> weight;  // layers with a weight
  ErrorSums output;
  int64_t operand_values = 0, saturated = 0;  // values beyond the limits of their format
  std::optional<double> saturation() const;
};

// Every changed layer, its outputs measured on these inputs.
std::vector<LayerError> compare_layers(const Graph& original, const Graph& transformed,
                                       const std::vector<Tensor>& inputs);

// A layer's parameter as the layer uses it: rounded to its format, if it has one.
Tensor used_parameter(const Module& module, const std::string& name);

}  // namespace mase
