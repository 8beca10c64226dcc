// SPDX-License-Identifier: Apache-2.0
// What a value of a graph is: the type of its elements and its shape, in which the batch is a
// symbol. "float32[N, 16]" is 16 numbers for each sample.
#pragma once

#include <string>
#include <vector>

#include "mase/ir/graph.h"

namespace mase {

// Dimensions of a value, the batch included. A graph with more is refused when it is made or read.
inline constexpr size_t largest_rank = 16;

// batches * N + constant, where N is the size of the batch.
struct Dim {
  int64_t batches = 0, constant = 0;

  bool is_fixed() const { return batches == 0; }
  bool is_batch() const { return batches == 1 && constant == 0; }
  int64_t at(int64_t batch_size) const { return batches * batch_size + constant; }
  std::string text() const;  // "16", "N", "2N", "N + 1"
  bool operator==(const Dim&) const = default;
};

struct ValueType {
  DType element = DType::f32;
  std::vector<Dim> shape = {};

  bool is_fixed() const;             // does not depend on the batch
  bool is_sample_by_sample() const;  // the first dimension is the batch, and no other depends on it
  Shape at(int64_t batch_size) const;
  std::string text() const;
  bool operator==(const ValueType&) const = default;
};

// The types of every node's results, by id. None for nodes whose sizes are no such sum (half the
// batch, its square), for what is computed from those, and for the output node. The graph must be
// one that `verify` takes. `before`: only what stands before this node.
std::vector<std::vector<ValueType>> infer_types(const Graph& graph, NodeId before = -1);

// The elements of every node's result, by id (of several, the first). Throws an Error that names
// the node where whole numbers are wanted and something else comes.
std::vector<DType> infer_elements(const Graph& graph, NodeId before = -1);

// Declares as int64 every float32 placeholder that is used as whole numbers alone (token numbers):
// for networks whose description does not say it.
void declare_index_inputs(Graph& graph);

// Finds what the graph's `size` methods give. For those who build or change a graph that has them.
void resolve_sizes(Graph& graph);

// Whole numbers of this placeholder are to be below this; nothing: it takes other values. For
// samples that are made up.
std::optional<int64_t> index_limit(const Graph& graph, NodeId placeholder);

// As values are computed with: float32, int64 or bool.
DType element_of(DType dtype);

}  // namespace mase
