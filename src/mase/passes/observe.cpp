// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/observe.h"

#include <algorithm>
#include <set>

#include "mase/ir/evaluate.h"

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
                   int64_t batch_size) {
  MASE_CHECK(!inputs.empty(), "no inputs");
  const std::set<NodeId> wanted(nodes.begin(), nodes.end());
  const int64_t rows = inputs.front().shape()[0];
  for (int64_t first = 0; first < rows; first += batch_size) {
    std::vector<Array> batch;
    for (const Tensor& input : inputs)
      batch.push_back(Array::from(rows_of(input, first, std::min(batch_size, rows - first))));
    EvaluateOptions options;
    options.observe = [&](const Node& node, const Array& result) {
      if (wanted.count(node.id)) observe(node.id, result.to_tensor());
    };
    evaluate(graph, batch, options);
  }
}

double accuracy(const Graph& graph, const Tensor& x, const Tensor& labels) {
  const NodeId result = graph.outputs().front();
  int64_t correct = 0, row = 0;
  observe_nodes(graph, {x}, {result}, [&](NodeId, const Tensor& logits) {
    const int64_t classes = logits.shape().back();
    for (int64_t i = 0; i < logits.shape()[0]; ++i, ++row) {
      const float* begin = logits.data<float>() + i * classes;
      const int64_t best = std::max_element(begin, begin + classes) - begin;
      correct += best == static_cast<int64_t>(labels.item(row));
    }
  });
  return row > 0 ? static_cast<double>(correct) / static_cast<double>(row) : 0;
}

}  // namespace mase
