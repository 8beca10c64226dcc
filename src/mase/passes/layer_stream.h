// SPDX-License-Identifier: Apache-2.0
// Rows go through a network piece by piece: what is still needed behind a place is kept there, so a
// method that changes layers in the order of the graph runs each of them once, and not everything
// before it again. Memory is that of the values that lie across one place, for all rows, and
// bounded.
#pragma once

#include <map>
#include <vector>

#include "mase/ir/graph.h"

namespace mase {

class LayerStream {
 public:
  explicit LayerStream(std::vector<Tensor> rows, int threads = 1)
      : rows_(std::move(rows)), threads_(threads) {}

  int64_t rows() const { return rows_.at(0).dim(0); }
  int threads() const { return threads_; }
  const std::vector<Tensor>& all_rows() const { return rows_; }
  // The result of this node for all rows, as the graph is now. Each call goes on from the place of
  // the last one: no node up to there may have changed since, and this one lies behind it, or is
  // taken by a node that does. Null: it is no tensor with a row for each sample, or more would have
  // to be kept than memory is there for.
  const Tensor* result(const Graph& graph, NodeId node);

 private:
  bool advance(const Graph& graph, size_t end, NodeId wanted);

  std::vector<Tensor> rows_;
  int threads_ = 1;
  std::map<NodeId, Tensor> held_;  // results that nodes behind the place take
  NodeId last_ = -1;               // the last node before the place
};

}  // namespace mase
