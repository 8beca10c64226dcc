// SPDX-License-Identifier: Apache-2.0
// A graph analysed once: what each node calls, with which attributes, who uses it, and what its
// values are. Whoever asks more than one question of a graph asks it here, so that no call is bound
// and no attribute validated twice. The graph must stay as and where it is.
#pragma once

#include <optional>
#include <vector>

#include "mase/ir/evaluate.h"
#include "mase/ir/value_type.h"

namespace mase {

// Whether this input of a call is whole numbers that count places.
bool is_index(const BoundCall& call, size_t input);

class BoundGraph {
 public:
  // `before`: only what stands before this node.
  explicit BoundGraph(const Graph& graph, NodeId before = -1);

  const Graph& graph() const { return *graph_; }
  // The nodes that were analysed, in order; the output is one of them.
  const std::vector<NodeId>& order() const { return order_; }
  // What a node calls, and the call that computes its value: for one of several results that which
  // has them. Inputs, constants, sizes and the output have no op.
  const BoundCall& own_call(NodeId id) const { return at(id).own; }
  const BoundCall& call(NodeId id) const { return at(id).picked ? *at(id).picked : at(id).own; }
  bool has_several_results(NodeId id) const { return at(id).several; }
  // All but those with several results, sizes and the output.
  bool has_value(NodeId id) const { return at(id).value; }

  // The shape of every node's result for this batch size, by id (see infer_shapes).
  std::vector<Shape> shapes(int64_t batch_size) const;
  // The elements of every node's result, by id (see infer_elements).
  std::vector<DType> elements() const;
  // The types of every node's results, by id (see infer_types).
  std::vector<std::vector<ValueType>> types() const;

 private:
  struct Bound {
    BoundCall own;
    std::optional<BoundCall> picked;
    bool several = false, value = false;
  };
  const Bound& at(NodeId id) const { return nodes_.at(static_cast<size_t>(id)); }
  std::optional<BoundCall> picked_by(const Node& node, const BoundCall& own) const;
  Shape infer(NodeId id, const std::vector<Shape>& shapes) const;

  const Graph* graph_;
  std::vector<NodeId> order_;
  std::vector<Bound> nodes_;  // by id
};

class TypedGraph : public BoundGraph {
 public:
  explicit TypedGraph(const Graph& graph) : BoundGraph(graph), types_(BoundGraph::types()) {}

  // The types of a node's results, in which the batch is a symbol.
  const std::vector<ValueType>& types(NodeId id) const {
    return types_.at(static_cast<size_t>(id));
  }
  // Of its one result; null if there is none that holds for every size of the batch.
  const ValueType* type(NodeId id) const { return types(id).empty() ? nullptr : &types(id)[0]; }

 private:
  std::vector<std::vector<ValueType>> types_;
};

}  // namespace mase
