// SPDX-License-Identifier: Apache-2.0
// Layers that exporters write in their parts: one record each, in idioms/. A record says which ops
// the idiom ends with, and looks at a node that is one of them: it puts the layer in the place of
// the parts, or leaves everything as it is.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mase/base/registry.h"
#include "mase/base/value.h"
#include "mase/ir/graph.h"

namespace mase::onnx {

inline bool is_near(double a, double b) {
  const double apart = a > b ? a - b : b - a;
  return apart <= 1e-4 * (b < 0 ? -b : b);
}

// A graph while idioms are looked for: what nodes compute, read without a care for how they are
// called, and nodes replaced together with what only they needed.
class IdiomGraph {
 public:
  explicit IdiomGraph(Graph& graph);

  Graph& graph() { return graph_; }
  const Graph& graph() const { return graph_; }
  bool is_gone(NodeId id) const { return gone_[static_cast<size_t>(id)]; }
  const Shape& shape(NodeId id) const { return shapes_[static_cast<size_t>(id)]; }  // batch of 3
  bool is_sole(NodeId id) const { return uses_[static_cast<size_t>(id)] == 1; }     // one user

  struct Reading {
    std::string op;  // "" for what is no call, or has parameters
    std::vector<NodeId> inputs;
    Value attributes;
  };
  Reading read(NodeId id) const;
  const Tensor* constant(NodeId id) const;  // null for what is none
  // x op number, whichever side the number is on where that makes no difference.
  std::optional<std::pair<NodeId, double>> with_number(NodeId id, const std::string& op) const;
  // Products of products: what is multiplied, and the numbers among it.
  struct Product {
    std::vector<NodeId> factors;
    double number = 1;
  };
  Product product_of(NodeId id) const;
  // x^2
  std::optional<NodeId> squared(NodeId id) const;
  // Without the numbers that a value is multiplied with on its way; their product.
  std::pair<NodeId, double> unscaled(NodeId id) const;

  // A node that was just added has this shape: by value, since it may be one of those that move.
  NodeId added(NodeId id, Shape shape);
  // `made` is the node in place of `old_id`, just added.
  void replace(NodeId old_id, NodeId made);
  std::string unique_path(const std::string& base) const;  // of modules and constants

 private:
  void collect(NodeId id, bool root, Product& product, int depth) const;
  void count_inputs(NodeId id, int change);
  void remove(NodeId id);

  Graph& graph_;
  std::vector<Shape> shapes_;  // by node, for a batch of 3
  std::vector<bool> gone_;
  std::vector<int> uses_;
};

struct Idiom {
  static constexpr const char* kind = "ONNX idiom";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;                                       // before => after
  std::vector<std::string> ends;                             // ops that its last node is
  std::function<bool(IdiomGraph& graph, NodeId last)> find;  // whether it was one
};

}  // namespace mase::onnx
