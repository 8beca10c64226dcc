// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/metadata.h"

#include <algorithm>

#include "mase/base/fields.h"
#include "mase/base/random.h"
#include "mase/ir/evaluate.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/value_type.h"

namespace mase {
namespace {

void describe(Value& entry, const Quantizer* quantizer) {
  if (!entry.is_dict()) return;
  entry["type"] = quantizer ? Value(quantizer->format) : Value("float");
  entry["precision"] = quantizer && !quantizer->precision.empty() ? Value::of(quantizer->precision)
                                                                  : Value(List{Value(32)});
}

}  // namespace

int64_t report_batch(const PassContext& context) {
  return context.batch_size > 0 ? context.batch_size : 1;
}

int64_t batch_or_report(const Value& given, const PassContext& context) {
  return given.is_null() ? report_batch(context) : given.as_int();
}

Field batch_size_field() {
  return integer_field("batch_size",
                       "count for this many samples; the caller's batch size if not given")
      .from(1);
}

bool has_samples(const Graph& graph, const PassContext& context) {
  const std::vector<NodeId> inputs = graph.placeholders();
  if (inputs.size() != 1 || context.samples.numel() == 0) return false;
  Shape wanted = graph.node(inputs.front()).sample_shape;
  wanted.insert(wanted.begin(), context.samples.shape()[0]);
  return wanted == context.samples.shape();
}

std::vector<Tensor> sample_inputs(const Graph& graph, const PassContext& context, int64_t rows) {
  std::vector<Tensor> inputs;
  if (has_samples(graph, context)) {
    const int64_t count = std::min(rows, context.samples.shape()[0]);
    Shape shape = context.samples.shape();
    shape[0] = count;
    const size_t size = static_cast<size_t>(element_count(shape));
    const Tensor samples = context.samples.to(DType::f32);
    inputs.push_back(Tensor::of<float>(shape, {samples.data<float>(), size}));
    return inputs;
  }
  for (const NodeId id : graph.placeholders()) {
    const Node& node = graph.node(id);
    Shape shape = node.sample_shape;
    shape.insert(shape.begin(), rows);
    Tensor tensor(shape);
    Random random(context.seed, "samples:" + node.name);
    float* values = tensor.mutable_data<float>();
    const auto limit = index_limit(graph, id);
    for (int64_t i = 0; i < tensor.numel(); ++i)
      values[i] = limit ? static_cast<float>(random.below(static_cast<uint64_t>(*limit)))
                        : static_cast<float>(random.normal());
    inputs.push_back(tensor);
  }
  return inputs;
}

std::string operand_of_input(const Graph& graph, const Node& node, size_t index) {
  const OpRecord* op = op_of(graph, node);
  return op ? input_operand(*op, index, node.kind == NodeKind::call_module) : "data_in";
}

TensorTable numeric_tensors(const Module& module) {
  TensorTable table;
  for (const TensorTable* source : {&module.parameters, &module.buffers})
    for (const auto& [name, tensor] : *source)
      if (tensor.dtype() == DType::f32) table.emplace_back(name, tensor);
  return table;
}

void update_operand_metadata(const Graph& graph, Node& node) {
  Value* common = node.meta.find("common");
  if (!common || !common->is_dict()) return;
  const Quantization& quantization = graph.quantization_of(node);
  if (Value* args = common->dict().find("args"); args && args->is_dict()) {
    for (auto& [name, entry] : args->dict()) {
      std::string operand = name;
      if (starts_with(name, "data_in_"))
        operand = operand_of_input(graph, node,
                                   static_cast<size_t>(parse_integer(name.substr(8)).value_or(0)));
      describe(entry, quantization.find(operand));
    }
  }
  if (Value* results = common->dict().find("results"); results && results->is_dict())
    for (auto& [name, entry] : results->dict()) describe(entry, quantization.find("data_out"));
}

void update_operand_metadata(Graph& graph) {
  for (const NodeId id : graph.order()) update_operand_metadata(graph, graph.node(id));
}

void ensure_metadata(Graph& graph, PassContext& context) {
  const bool known = std::all_of(graph.order().begin(), graph.order().end(), [&](NodeId id) {
    return graph.node(id).meta.contains("software");
  });
  if (known) return;
  for (const char* pass : {"init_metadata", "add_common_metadata", "add_software_metadata"})
    run_pass(graph, pass, Value(), context);
}

}  // namespace mase
