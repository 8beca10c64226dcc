// SPDX-License-Identifier: Apache-2.0
// What number formats do to a network: the same network without them beside it, row by row. Errors
// of a node's results are relative to their power without formats, and hold what came from the
// nodes before it. Memory is that of a few hundred rows of the nodes asked for.
#pragma once

#include <map>
#include <vector>

#include "mase/ir/graph.h"

namespace mase {

// The same nodes with the same ids, and no rounding.
Graph without_formats(const Graph& graph);
bool has_formats(const Graph& graph);

// Squares of differences of all these nodes' results together, over the power of the reference's.
double format_error(const Graph& reference, const Graph& graph, const std::vector<NodeId>& nodes,
                    const std::vector<Tensor>& rows, int threads = 1);

// The same of all outputs, one by one in their order: those of `graph` may be other nodes.
double output_format_error(const Graph& reference, const Graph& graph,
                           const std::vector<Tensor>& rows, int threads = 1);

// Of each channel (an axis of a node's result; negative: from the end): mean of graph's results
// less mean of the reference's.
std::vector<double> channel_bias(const Graph& reference, const Graph& graph, NodeId node,
                                 int64_t axis, const std::vector<Tensor>& rows, int threads = 1);

// The largest difference of outputs over the largest output of the first.
double largest_change(const Graph& first, const Graph& second, const std::vector<Tensor>& rows,
                      int threads = 1);

}  // namespace mase
