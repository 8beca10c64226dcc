// SPDX-License-Identifier: Apache-2.0
// The metadata that passes share: node.meta["common"], ["software"] and ["hardware"], laid out as
// MASE lays them out.
#pragma once

#include "mase/ir/graph.h"
#include "mase/passes/pass.h"

namespace mase {

// The batch size whose shapes the reports print: the caller's, or 1.
int64_t report_batch(const PassContext& context);
// The same unless an argument gives another.
int64_t batch_or_report(const Value& given, const PassContext& context);
Field batch_size_field();

// The inputs of a graph for `rows` samples: the context's own, or random ones of a seed when it has
// none (shapes and outputs can still be compared then).
std::vector<Tensor> sample_inputs(const Graph& graph, const PassContext& context, int64_t rows);
bool has_samples(const Graph& graph, const PassContext& context);

// Type and precision of every operand, from what the layer is quantised to. Does nothing for nodes
// without common metadata.
void update_operand_metadata(const Graph& graph, Node& node);
void update_operand_metadata(Graph& graph);

// The operand prefix (data_in, weight, bias) under which a node's argument is quantised.
std::string operand_of_input(const Graph& graph, const Node& node, size_t index);

// Parameters and buffers that take part in arithmetic, in the order of the state dict; PyTorch's
// num_batches_tracked does not.
TensorTable numeric_tensors(const Module& module);

// A graph with the three kinds of metadata in place, if it has none yet.
void ensure_metadata(Graph& graph, PassContext& context);

}  // namespace mase
