// SPDX-License-Identifier: Apache-2.0
// A program against the ops' reference code: results, and the gradient of every parameter by
// reverse sweeps of the ops' own `grad`.
#pragma once

#include <cmath>
#include <map>

#include "mase/base/random.h"
#include "mase/engine/program.h"
#include "mase/ir/evaluate.h"
#include "mase/train/loss.h"
#include "support/support.h"

namespace mase {

struct Sample {
  Tensor x;
  std::vector<int32_t> labels;
  Sample(const Graph& graph, int64_t rows) : x(shape_of(graph, rows)) {
    Random random(5, "inputs");
    for (int64_t i = 0; i < x.numel(); ++i)
      x.mutable_data<float>()[i] = static_cast<float>(random.uniform(-1.5, 1.5));
    for (int64_t i = 0; i < rows; ++i) labels.push_back(static_cast<int32_t>(random.below(3)));
  }
  static Shape shape_of(const Graph& graph, int64_t rows) {
    Shape shape = graph.node(graph.placeholders()[0]).sample_shape;
    shape.insert(shape.begin(), rows);
    return shape;
  }
  Batch batch(int64_t size) const {
    Batch batch;
    batch.inputs.emplace_back(x);
    batch.target = RowTensor(labels);
    batch.size = size;
    return batch;
  }
  Array array(int64_t rows) const {
    Shape shape = x.shape();
    const int64_t width = x.numel() / shape[0];
    shape[0] = rows;
    Array result(shape);
    for (int64_t i = 0; i < rows * width; ++i) result.data[static_cast<size_t>(i)] = x.item(i);
    return result;
  }
};

inline void expect_inference(const Graph& graph, int64_t batch_size, const std::string& what) {
  verify(graph);
  const Sample sample(graph, batch_size);
  CompileOptions options;
  options.batch_size = batch_size;
  Program program = Program::compile(graph, options);
  for (const int64_t rows : {batch_size, (batch_size + 1) / 2}) {
    const Array wanted = evaluate(graph, {sample.array(rows)})[0];
    program.forward(sample.batch(rows));
    std::vector<float> got(wanted.data.size());
    program.read_output(0, got.data());
    for (size_t i = 0; i < got.size(); ++i)
      ASSERT_NEAR(got[i], wanted.data[i], 2e-4 * std::max(1.0, std::abs(wanted.data[i])))
          << what << ", rows " << rows << "\n"
          << graph.text() << program.dump();
  }
}

// The gradients of the mean cross-entropy by the ops' own grads, in double precision.
inline std::map<std::string, Array> reference_gradients(const Graph& graph, const Sample& sample,
                                                        int64_t rows) {
  std::map<NodeId, Array> values, gradients;
  EvaluateOptions options;
  options.training = true;
  options.observe = [&](const Node& node, const Array& result) { values[node.id] = result; };
  const Array logits = evaluate(graph, {sample.array(rows)}, options)[0];
  Array up(logits.shape);
  for (size_t b = 0; b < static_cast<size_t>(rows); ++b) {
    double total = 0;
    for (size_t c = 0; c < 3; ++c) total += std::exp(logits.data[b * 3 + c]);
    for (size_t c = 0; c < 3; ++c)
      up.data[b * 3 + c] = (std::exp(logits.data[b * 3 + c]) / total -
                            (sample.labels[b] == static_cast<int32_t>(c) ? 1 : 0)) /
                           static_cast<double>(rows);
  }
  gradients[graph.outputs()[0]] = up;
  std::map<std::string, Array> result;
  const auto accumulate = [](Array& to, const Array& from) {
    if (to.data.empty()) {
      to = from;
      return;
    }
    for (size_t i = 0; i < from.data.size(); ++i) to.data[i] += from.data[i];
  };
  const std::vector<NodeId>& order = graph.order();
  for (size_t k = order.size(); k-- > 0;) {
    const Node& node = graph.node(order[k]);
    if (!gradients.count(node.id)) continue;
    if (node.kind == NodeKind::get_attr) accumulate(result[node.target], gradients[node.id]);
    if (node.kind == NodeKind::get_attr || node.kind == NodeKind::placeholder) continue;
    const BoundCall bound = bind_value(graph, node);
    OpCall call{bound.attributes, {}, {}, true, static_cast<uint64_t>(node.id)};
    std::map<std::string, Array> params;
    if (bound.module)
      for (const TensorTable* table : {&bound.module->parameters, &bound.module->buffers})
        for (const auto& [name, tensor] : *table) params[name] = Array::from(tensor);
    for (const auto& [name, array] : params) call.params[name] = &array;
    for (const NodeId input : bound.inputs) call.inputs.push_back(&values[input]);
    const OpGradients own = bound.op->grad(call, values[node.id], gradients[node.id]);
    for (size_t i = 0; i < bound.inputs.size(); ++i)
      accumulate(gradients[bound.inputs[i]], own.inputs[i]);
    for (const auto& [name, array] : own.params)
      accumulate(result[graph.node(bound.caller).target + "." + name], array);
  }
  return result;
}

inline void expect_gradients(const Graph& graph, int64_t batch_size, int64_t rows,
                             const std::string& what) {
  const Sample sample(graph, batch_size);
  CompileOptions options;
  options.training = true;
  options.batch_size = batch_size;
  options.loss = make_loss("cross_entropy");
  Program program = Program::compile(graph, options);
  program.forward_backward(sample.batch(rows));
  const auto wanted = reference_gradients(graph, sample, rows);
  for (const ParameterView& view : program.parameters()) {
    const auto found = wanted.find(view.name);
    double largest = 0;
    if (found != wanted.end())
      for (const double value : found->second.data) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < view.gradient.size(); ++i)
      ASSERT_NEAR(view.gradient[i], found == wanted.end() ? 0.0 : found->second.data[i],
                  2e-5 + 2e-3 * largest)
          << what << " " << view.name << " " << i << "\n"
          << graph.text() << program.dump();
  }
}

}  // namespace mase
