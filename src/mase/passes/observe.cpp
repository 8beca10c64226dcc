// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/observe.h"

#include <algorithm>
#include <set>
#include <vector>

#include "mase/engine/kernels/kernels.h"
#include "mase/engine/program.h"

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

void observe_nodes(const Graph& graph, const std::vector<Tensor>& inputs,
                   const std::vector<NodeId>& nodes,
                   const std::function<void(NodeId node, const Tensor& result)>& observe,
                   int64_t most_rows) {
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
  if (!computed.empty()) run_observed(graph, inputs, computed, batch_size, observe);
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
