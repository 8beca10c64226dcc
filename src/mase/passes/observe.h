// SPDX-License-Identifier: Apache-2.0
// Runs a graph in evaluation mode and hands out the results of nodes, batch by batch, without ever
// holding more than one batch of them, and no batch larger than rows_at_once.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "mase/ir/graph.h"

namespace mase {

// `observe` gets row-major results, [rows][features...], for the listed nodes (placeholders too).
void observe_nodes(const Graph& graph, const std::vector<Tensor>& inputs,
                   const std::vector<NodeId>& nodes,
                   const std::function<void(NodeId node, const Tensor& result)>& observe,
                   int64_t most_rows = 256, int threads = 1);

// Two graphs side by side: results of pairs of nodes, of one shape each, batch by batch. `pair` is
// the place in the list; pairs of placeholders are left out.
using NodePairs = std::vector<std::pair<NodeId, NodeId>>;
void observe_both(const Graph& first, const Graph& second, const std::vector<Tensor>& inputs,
                  const NodePairs& pairs,
                  const std::function<void(size_t pair, const Tensor& of_first,
                                           const Tensor& of_second)>& observe,
                  int threads = 1);

// Rows first..first+count of a tensor, copied.
Tensor rows_of(const Tensor& tensor, int64_t first, int64_t count);

// Share of rows whose largest output is their label.
double accuracy(const Graph& graph, const Tensor& x, const Tensor& labels);

}  // namespace mase
