// SPDX-License-Identifier: Apache-2.0
#include "mase/run/describe.h"

#include "mase/base/table.h"
#include "mase/base/text.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/op.h"
#include "mase/ir/typed_graph.h"

namespace mase {

Value summary_record(const Graph& graph, int64_t batch_size) {
  const BoundGraph bound(graph);
  const std::vector<Shape> shapes = bound.shapes(batch_size), sample = bound.shapes(1);
  const auto shape_of = [&](NodeId id) { return Value::of(shapes.at(static_cast<size_t>(id))); };
  List layers;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    if (node.kind != NodeKind::call_module && node.kind != NodeKind::call_function &&
        node.kind != NodeKind::call_method)
      continue;
    const BoundCall& call = bound.own_call(id);
    std::vector<Shape> inputs;  // of one sample
    for (const NodeId input : call.inputs) inputs.push_back(sample.at(static_cast<size_t>(input)));
    const Shape& out = sample.at(static_cast<size_t>(id));
    int64_t parameters = 0;
    if (call.module)
      for (const auto& [name, tensor] : call.module->parameters) parameters += tensor.numel();
    const OpCost cost = call.op->cost ? call.op->cost(call.attributes, inputs, out) : OpCost{};
    layers.push_back(Dict{{"layer", node.kind == NodeKind::call_module ? node.target : node.name},
                          {"type", class_text(graph, node)},
                          {"input_shape", inputs.empty() ? Value() : shape_of(call.inputs[0])},
                          {"output_shape", shape_of(id)},
                          {"parameters", parameters},
                          {"macs", cost.macs}});
  }
  return layers;
}

std::string summary_text(const Value& summary, const Graph& graph) {
  Table table({"", "Name", "Type", "In", "Out", "Params", "MACs per sample"});
  int64_t index = 0;
  for (const Value& layer : summary.as_list()) {
    const auto shape = [&](const char* key) {
      return layer[key].is_null() ? std::string() : shape_text(layer[key].as_int_list());
    };
    table.add({std::to_string(index++), layer["layer"].as_string(), layer["type"].as_string(),
               shape("input_shape"), shape("output_shape"),
               with_thousands(layer["parameters"].as_int()),
               with_thousands(layer["macs"].as_int())});
  }
  const int64_t trainable = graph.parameter_count(true), all = graph.parameter_count(false);
  const auto line = [](const std::string& number, const char* what) {
    return pad_right(number, 10) + what + "\n";
  };
  return table.str() + line(human_count(static_cast<double>(trainable)), "Trainable params") +
         line(human_count(static_cast<double>(all - trainable)), "Non-trainable params") +
         line(human_count(static_cast<double>(all)), "Total params") +
         line(fmt::format("{:.3f}", static_cast<double>(all) * 4e-6),
              "Total estimated model params size (MB)");
}

Value dataset_record(const Dataset& dataset) {
  return Dict{{"name", dataset.name},
              {"variant", dataset.variant},
              {"identity", dataset.identity},
              {"notice", dataset.notice},
              {"train_rows", dataset.train.rows()},
              {"validation_rows", dataset.validation.rows()},
              {"test_rows", dataset.test.rows()},
              {"classes", Value::of(dataset.class_names)}};
}

std::string dataset_text(const Dataset& dataset) {
  return fmt::format(
      "Data set {} ({}): {} training, {} validation, {} test rows", printable(dataset.name),
      printable(dataset.variant), with_thousands(dataset.train.rows()),
      with_thousands(dataset.validation.rows()), with_thousands(dataset.test.rows()));
}

}  // namespace mase
