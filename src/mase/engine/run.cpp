// SPDX-License-Identifier: Apache-2.0
// Shorthands for analyses: evaluation mode, any number of rows, in batches.
#include <algorithm>

#include "mase/engine/program.h"
#include "mase/ir/typed_graph.h"

namespace mase {
namespace {

int64_t rows_of(const Graph& graph, const std::vector<Tensor>& inputs) {
  const std::vector<NodeId> placeholders = graph.placeholders();
  if (inputs.size() != placeholders.size())
    throw Error(graph.name, fmt::format("the network takes {} inputs, got {}", placeholders.size(),
                                        inputs.size()));
  int64_t rows = -1;
  for (size_t i = 0; i < inputs.size(); ++i) {
    Shape wanted = graph.node(placeholders[i]).sample_shape;
    const Shape& given = inputs[i].shape();
    if (given.size() != wanted.size() + 1 ||
        !std::equal(wanted.begin(), wanted.end(), given.begin() + 1))
      throw Error(graph.node(placeholders[i]).name,
                  fmt::format("the network takes samples of shape {}, got an input of shape {}",
                              shape_text(wanted), shape_text(given)));
    if (rows >= 0 && given[0] != rows)
      throw Error(graph.name, "the inputs have different numbers of rows");
    rows = given[0];
  }
  return std::max<int64_t>(rows, 0);
}

Batch batch_of(const std::vector<Tensor>& inputs) {
  Batch batch;
  for (const Tensor& input : inputs) batch.inputs.emplace_back(input);
  return batch;
}

std::vector<Tensor> as_floats(const std::vector<Tensor>& inputs) {
  std::vector<Tensor> floats;
  for (const Tensor& input : inputs) floats.push_back(input.to(DType::f32));
  return floats;
}

int64_t rows_at_once(const BoundGraph& bound, int64_t most) {
  const Graph& graph = bound.graph();
  constexpr int64_t budget = (int64_t{256} << 20) / int64_t{sizeof(float)};
  // At the size asked for: some graphs have shapes at their own batch only. Constants do not grow.
  const std::vector<Shape> shapes = bound.shapes(most);
  int64_t values = 0;
  for (const NodeId id : graph.order())
    if (graph.node(id).kind != NodeKind::get_attr)
      values += element_count(shapes[static_cast<size_t>(id)]);
  return values <= budget ? most : std::clamp<int64_t>(budget / (values / most), 1, most);
}

}  // namespace

int64_t rows_at_once(const Graph& graph, int64_t most) {
  return rows_at_once(BoundGraph(graph), most);
}

std::vector<Tensor> run(const Graph& graph, const std::vector<Tensor>& given, int threads) {
  const std::vector<Tensor> inputs = as_floats(given);
  const int64_t rows = rows_of(graph, inputs);
  CompileOptions options;
  options.threads = threads;
  // Results that are not one row per sample (a mean over the batch, say) need the whole batch.
  const TypedGraph typed(graph);
  bool row_by_row = true;
  for (const NodeId id : graph.outputs()) {
    const ValueType* type = typed.type(id);
    row_by_row = row_by_row && type && type->is_sample_by_sample();
  }
  options.batch_size = row_by_row ? rows_at_once(typed, std::clamp<int64_t>(rows, 1, 256))
                                  : std::max<int64_t>(rows, 1);
  Program program = Program::compile(graph, options);
  std::vector<Tensor> results;
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    Shape shape = program.output_shape(static_cast<int>(i));
    if (!shape.empty() && shape[0] == options.batch_size && options.batch_size != rows)
      shape[0] = rows;
    results.emplace_back(shape);
  }
  Batch batch = batch_of(inputs);
  for (int64_t first = 0; first < rows; first += options.batch_size) {
    batch.first_row = first;
    batch.size = std::min(options.batch_size, rows - first);
    program.forward(batch);
    for (size_t i = 0; i < results.size(); ++i) {
      const int64_t row = rows > 0 && !results[i].shape().empty() && results[i].shape()[0] == rows
                              ? results[i].numel() / rows
                              : 0;
      program.read_output(static_cast<int>(i), results[i].mutable_data<float>() + first * row);
    }
  }
  return results;
}

void run_observed(const Graph& graph, const std::vector<Tensor>& given,
                  const std::vector<NodeId>& wanted, int64_t most_rows,
                  const std::function<void(NodeId node, const Tensor& result)>& observe) {
  const std::vector<Tensor> inputs = as_floats(given);
  const int64_t rows = rows_of(graph, inputs);
  CompileOptions options;
  const BoundGraph bound(graph);
  options.batch_size = rows_at_once(bound, std::max<int64_t>(1, std::min(most_rows, rows)));
  std::vector<NodeId> nodes = wanted;
  std::erase_if(nodes, [&](NodeId id) { return !bound.has_value(id); });
  options.keep = nodes;
  options.fold_batch_norm = false;
  Program program = Program::compile(graph, options);
  Batch batch = batch_of(inputs);
  std::vector<Shape> shapes;
  for (int64_t first = 0; first < rows; first += options.batch_size) {
    const int64_t size = std::min(options.batch_size, rows - first);
    if (batch.size != size) shapes = bound.shapes(size);
    batch.first_row = first;
    batch.size = size;
    program.forward(batch);
    for (const NodeId node : nodes) {
      Tensor result(shapes[static_cast<size_t>(node)]);
      program.read_node(node, result.mutable_data<float>());
      observe(node, result);
    }
  }
}

}  // namespace mase
