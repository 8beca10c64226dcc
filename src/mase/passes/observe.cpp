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

// Results of these nodes of every graph, side by side.
struct Watch {
  const Graph* graph;
  std::vector<NodeId> nodes;
};
using Observe = std::function<void(size_t place, const std::vector<Tensor>& results)>;

void run_graphs(const std::vector<Watch>& watched, const std::vector<Tensor>& inputs,
                int64_t batch_size, int threads, const Observe& observe) {
  std::vector<Program> programs;
  for (const Watch& watch : watched) {
    CompileOptions options;
    options.batch_size = batch_size;
    options.keep = watch.nodes;
    options.fold_batch_norm = false;
    options.threads = threads;
    programs.push_back(Program::compile(*watch.graph, options));
  }
  std::vector<Tensor> floats;
  for (const Tensor& input : inputs) floats.push_back(input.to(DType::f32));
  Batch batch;
  for (const Tensor& input : floats) batch.inputs.emplace_back(input);
  const Watch& first = watched.front();
  const int64_t rows = inputs.front().dim(0);
  std::vector<Shape> shapes;
  for (int64_t at = 0; at < rows; at += batch_size) {
    const int64_t size = std::min(batch_size, rows - at);
    if (batch.size != size) shapes = infer_shapes(*first.graph, size);
    batch.first_row = at;
    batch.size = size;
    for (Program& program : programs) program.forward(batch);
    for (size_t place = 0; place < first.nodes.size(); ++place) {
      std::vector<Tensor> results;
      for (size_t i = 0; i < watched.size(); ++i) {
        results.emplace_back(shapes[static_cast<size_t>(first.nodes[place])]);
        programs[i].read_node(watched[i].nodes[place], results.back().mutable_data<float>());
      }
      observe(place, results);
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
  std::erase_if(computed, [&](NodeId id) { return !has_value(graph, graph.node(id)); });
  if (computed.empty()) return;
  run_graphs({{&graph, computed}}, inputs, batch_size, threads,
             [&](size_t place, const std::vector<Tensor>& results) {
               observe(computed[place], results[0]);
             });
}

void observe_both(const Graph& first, const Graph& second, const std::vector<Tensor>& inputs,
                  const NodePairs& pairs,
                  const std::function<void(size_t pair, const Tensor& of_first,
                                           const Tensor& of_second)>& observe,
                  int threads) {
  MASE_CHECK(!inputs.empty(), "no inputs");
  Watch watched[2] = {{&first, {}}, {&second, {}}};
  std::vector<size_t> places;
  for (size_t i = 0; i < pairs.size(); ++i) {
    if (first.node(pairs[i].first).kind == NodeKind::placeholder) continue;
    places.push_back(i);
    watched[0].nodes.push_back(pairs[i].first);
    watched[1].nodes.push_back(pairs[i].second);
  }
  if (places.empty()) return;
  const int64_t rows = inputs.front().dim(0);
  run_graphs({watched[0], watched[1]}, inputs,
             rows_at_once(first, std::clamp<int64_t>(rows, 1, 256)), threads,
             [&](size_t place, const std::vector<Tensor>& results) {
               observe(places[place], results[0], results[1]);
             });
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
