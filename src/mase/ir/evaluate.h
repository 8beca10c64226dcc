// SPDX-License-Identifier: Apache-2.0
// Runs a graph node by node with the ops' own `eval`, in double precision: slow, simple, and the
// measure of everything faster. Quantised operands are rounded in single precision first, as the
// engine rounds them.
#pragma once

#include <functional>
#include <vector>

#include "mase/ir/graph.h"
#include "mase/ir/op.h"

namespace mase {

// The op, attributes and tensor inputs of a node, whether it calls a module, function or method.
struct BoundCall {
  const OpRecord* op = nullptr;
  Value attributes;
  std::vector<NodeId> inputs;
  const Module* module = nullptr;
  NodeId caller = -1;  // the node whose module and quantisation these are
};
BoundCall bind_call(const Graph& graph, const Node& node);

// Whether a node stands for several results; getitem nodes pick one.
bool has_several_results(const Graph& graph, const Node& node);

// Whether a node has a tensor as its value: all but those with several results, sizes, the output.
bool has_value(const Graph& graph, const Node& node);

// The call that computes a node's value: its own, or for one of several results the call that has
// them, with its attribute `result` set.
BoundCall bind_value(const Graph& graph, const Node& node);

// Whether this call, of a node that is no getitem, gives several results; and the call for one of
// them, which node `node` picks from `source`.
bool gives_several_results(const BoundCall& call);
BoundCall one_result(const BoundCall& several, const Value& index, const std::string& node,
                     const std::string& source);

// Whether the call gives the first of its results, or the only one: that is data_out.
bool gives_first_result(const BoundCall& call);

// The operand that input `index` of a call is. MASE's rule: the first input is data_in; the second
// is `weight` for products, and the third their bias; else they are data_in too.
std::string input_operand(const OpRecord& op, size_t index, bool is_module);

struct EvaluateOptions {
  bool training = false;
  uint64_t seed = 0;
  bool quantized = true;  // false: ignore quantisation
  // Called after each node with its result.
  std::function<void(const Node& node, const Array& result)> observe = {};
};

// The results of the graph's outputs for these inputs (one per placeholder, in order).
std::vector<Array> evaluate(const Graph& graph, const std::vector<Array>& inputs,
                            const EvaluateOptions& options = {});

}  // namespace mase
