// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/write/export.h"

#include <algorithm>
#include <array>
#include <set>

#include "mase/base/text.h"
#include "mase/io/onnx/file/tensor.h"
#include "mase/io/onnx/write/own_graph.h"
#include "mase/io/onnx/write/writer.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/typed_graph.h"

namespace mase::onnx {
namespace {

constexpr std::array<const char*, 4> flavours = {"float", "qonnx", "qcdq", "qdq"};
constexpr int64_t ir_version = 10;

ValueInfo value_info(const std::string& name, const Shape& shape, const Shape& further,
                     Element element) {
  ValueInfo info{.name = name, .element = element};
  info.shape.emplace();
  for (size_t i = 0; i < shape.size(); ++i) {
    Dimension dimension;
    if (shape[i] == further[i])
      dimension.size = shape[i];
    else
      dimension.parameter = i == 0 ? "batch" : fmt::format("batch_{}", i);
    info.shape->push_back(dimension);
  }
  return info;
}

}  // namespace

const char* flavour_name(Flavour flavour) { return flavours[static_cast<size_t>(flavour)]; }
std::vector<std::string> flavour_names() { return {flavours.begin(), flavours.end()}; }
Flavour flavour_from_name(const std::string& name) {
  const auto found = std::find(flavours.begin(), flavours.end(), name);
  if (found == flavours.end())
    throw Error("--flavour", fmt::format("unknown flavour '{}'", printable(name)),
                suggestion(name, flavour_names()));
  return static_cast<Flavour>(found - flavours.begin());
}

Attribute integer_attribute(const std::string& name, int64_t value) {
  return {.name = name, .type = Attribute::Type::integer, .integer = value};
}
Attribute number_attribute(const std::string& name, double value) {
  return {.name = name, .type = Attribute::Type::number, .number = static_cast<float>(value)};
}
Attribute text_attribute(const std::string& name, const std::string& value) {
  return {.name = name, .type = Attribute::Type::text, .text = value};
}
Attribute integers_attribute(const std::string& name, std::vector<int64_t> values) {
  return {.name = name, .type = Attribute::Type::integers, .integers = std::move(values)};
}

Model export_graph(const Graph& graph, const ExportOptions& options) {
  if (options.operator_set < oldest_written || options.operator_set > newest_written)
    throw Error("--opset", fmt::format("operator set {} is not written", options.operator_set),
                fmt::format("give {} to {}", oldest_written, newest_written));
  Export exported{graph, options};
  const BoundGraph bound(graph);
  exported.shapes = bound.shapes(2);
  exported.further = bound.shapes(3);
  exported.elements = bound.elements();
  Model& model = exported.model;
  model.ir_version = ir_version;
  model.producer = own_producer;
  model.producer_version = "0.1.0";
  model.doc = fmt::format("{}, {} parameters", graph.name, with_thousands(graph.parameter_count()));
  model.graph.name = graph.name;
  for (const NodeId id : graph.order()) {
    const Node& node = graph.node(id);
    const auto at = static_cast<size_t>(id);
    if (node.kind == NodeKind::placeholder) {
      exported.names[id] = node.name;
      exported.known[node.name] = {exported.shapes[at], exported.further[at]};
      model.graph.inputs.push_back(value_info(node.name, exported.shapes[at], exported.further[at],
                                              element_for(node.element)));
    } else if (node.kind == NodeKind::get_attr) {
      exported.names[id] = node.target;
      exported.constants.emplace(node.target, "");
      exported.tensors[node.target] = {{node.target}};
      model.graph.initializers.push_back(tensor_data(node.target, *graph.tensor(node.target)));
    } else if (node.kind == NodeKind::output) {
      for (const NodeId result : graph.outputs()) {
        const auto from = static_cast<size_t>(result);
        model.graph.outputs.push_back(value_info(exported.names.at(result), exported.shapes[from],
                                                 exported.further[from],
                                                 element_for(exported.elements[from])));
      }
    } else {
      if (!bound.has_value(id)) continue;  // what takes a part of it writes it
      BoundCall call = bound.call(id);
      const OnnxWriter* writer = Registry<OnnxWriter>::instance().find(call.op->name);
      if (!writer)
        throw Error(node.name,
                    fmt::format("ONNX files of ours have no node for '{}'", call.op->name));
      WriteContext context(exported, node, std::move(call));
      writer->write(context);
      context.check_formats();
    }
  }
  std::set<std::string> outputs;
  for (const ValueInfo& output : model.graph.outputs) outputs.insert(output.name);
  for (const NodeData& node : model.graph.nodes)
    for (const std::string& name : node.outputs)
      if (const auto found = exported.known.find(name);
          found != exported.known.end() && !outputs.count(name))
        model.graph.values.push_back(
            value_info(name, found->second.first, found->second.second, Element::f32));
  model.operator_sets = {{"", options.operator_set}};
  if (exported.uses_qonnx)
    model.operator_sets.push_back({"qonnx.custom_op.general", exported.qonnx_version.value_or(2)});
  if (!options.trial) describe_graph(graph, options, exported.tensors, model);
  return model;
}

}  // namespace mase::onnx
