// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/observe.h"

#include <algorithm>
#include <set>
#include <vector>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/program.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/value_type.h"

namespace mase {

Tensor rows_of(const Tensor& tensor, int64_t first, int64_t count) {
  Shape shape = tensor.shape();
  MASE_CHECK(!shape.empty() && first >= 0 && first + count <= shape[0], "rows {}+{} of {}", first,
             count, shape_text(shape));
  shape[0] = count;
  Tensor rows(shape, tensor.dtype());
  const size_t row_bytes =
      tensor.shape()[0] > 0 ? tensor.bytes() / static_cast<size_t>(tensor.shape()[0]) : 0;
  std::copy_n(tensor.raw() + static_cast<size_t>(first) * row_bytes,
              static_cast<size_t>(count) * row_bytes, rows.mutable_raw());
  return rows;
}

namespace {

using Observe = std::function<void(NodeId node, const std::vector<Tensor>& results)>;

// These nodes of every graph, side by side.
void run_graphs(const std::vector<const Graph*>& graphs, const std::vector<Tensor>& inputs,
                std::vector<NodeId> nodes, int64_t batch_size, int threads,
                const Observe& observe) {
  const Graph& first = *graphs.front();
  std::erase_if(nodes, [&](NodeId id) { return !has_value(first, first.node(id)); });
  CompileOptions options;
  options.batch_size = batch_size;
  options.keep = nodes;
  options.fold_batch_norm = false;
  options.threads = threads;
  std::vector<Program> programs;
  for (const Graph* graph : graphs) programs.push_back(Program::compile(*graph, options));
  std::vector<Tensor> floats;
  for (const Tensor& input : inputs) floats.push_back(input.to(DType::f32));
  Batch batch;
  for (const Tensor& input : floats) batch.inputs.emplace_back(input);
  const int64_t rows = inputs.front().dim(0);
  std::vector<Shape> shapes;
  for (int64_t at = 0; at < rows; at += batch_size) {
    const int64_t size = std::min(batch_size, rows - at);
    if (batch.size != size) shapes = infer_shapes(first, size);
    batch.first_row = at;
    batch.size = size;
    for (Program& program : programs) program.forward(batch);
    for (const NodeId node : nodes) {
      std::vector<Tensor> results;
      for (const Program& program : programs) {
        results.emplace_back(shapes[static_cast<size_t>(node)]);
        program.read_node(node, results.back().mutable_data<float>());
      }
      observe(node, results);
    }
  }
}

}  // namespace

void observe_nodes(const Graph& graph, const std::vector<Tensor>& inputs,
                   const std::vector<NodeId>& nodes,
                   const std::function<void(NodeId node, const Tensor& result)>& observe,
                   int64_t most_rows, int threads) {
  MASE_CHECK(!inputs.empty(), "no inputs");
  // Each node once; what the graph is given is handed out from here.
  std::vector<NodeId> computed, given;
  for (const NodeId id : std::set<NodeId>(nodes.begin(), nodes.end()))
    (graph.node(id).kind == NodeKind::placeholder ? given : computed).push_back(id);
  const std::vector<NodeId> placeholders = graph.placeholders();
  const int64_t rows = inputs.front().shape()[0];
  const int64_t batch_size = rows_at_once(graph, std::clamp<int64_t>(rows, 1, most_rows));
  for (const NodeId id : given) {
    const size_t index = static_cast<size_t>(
        std::find(placeholders.begin(), placeholders.end(), id) - placeholders.begin());
    for (int64_t first = 0; first < rows; first += batch_size)
      observe(id, rows_of(inputs[index], first, std::min(batch_size, rows - first)));
  }
  if (computed.empty()) return;
  run_graphs({&graph}, inputs, computed, batch_size, threads,
             [&](NodeId id, const std::vector<Tensor>& results) { observe(id, results[0]); });
}

void observe_both(const Graph& first, const Graph& second, const std::vector<Tensor>& inputs,
                  const std::vector<NodeId>& wanted,
                  const std::function<void(NodeId node, const Tensor& of_first,
                                           const Tensor& of_second)>& observe,
                  int threads) {
  MASE_CHECK(!inputs.empty(), "no inputs");
  // Each node once; what both are given is the same in both.
  std::vector<NodeId> nodes;
  for (const NodeId id : std::set<NodeId>(wanted.begin(), wanted.end()))
    if (first.node(id).kind != NodeKind::placeholder) nodes.push_back(id);
  if (nodes.empty()) return;
  const int64_t rows = inputs.front().dim(0);
  run_graphs(
      {&first, &second}, inputs, nodes, rows_at_once(first, std::clamp<int64_t>(rows, 1, 256)),
      threads,
      [&](NodeId id, const std::vector<Tensor>& results) { observe(id, results[0], results[1]); });
}

double accuracy(const Graph& graph, const Tensor& x, const Tensor& labels) {
  const int64_t rows = std::min(x.shape()[0], labels.numel());
  if (rows == 0) return 0;
  CompileOptions options;
  options.batch_size = rows_at_once(graph, std::min<int64_t>(rows, 1024));
  Program program = Program::compile(graph, options);
  const Tensor values = x.to(DType::f32), classes = labels.to(DType::i32);
  const int64_t outputs = element_count(program.output_shape(0)) / options.batch_size;
  std::vector<float> logits(static_cast<size_t>(options.batch_size * outputs));
  Batch batch;
  batch.inputs = {values};
  int64_t correct = 0;
  for (int64_t first = 0; first < rows; first += options.batch_size) {
    batch.first_row = first;
    batch.size = std::min(options.batch_size, rows - first);
    program.forward(batch);
    program.read_output(0, logits.data());
    for (int64_t row = 0; row < batch.size; ++row)
      correct += kernels::reference::hits(logits.data() + row * outputs, outputs, 1, 1,
                                          classes.data<int32_t>() + first + row);
  }
  return static_cast<double>(correct) / static_cast<double>(rows);
}

}  // namespace mase
