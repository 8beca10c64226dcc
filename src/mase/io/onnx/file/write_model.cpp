// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/file/write_model.h"

#include <utility>

#include "mase/base/file.h"
#include "mase/base/text.h"
#include "mase/io/onnx/file/fields.h"
#include "mase/io/onnx/file/wire.h"

namespace mase::onnx {
namespace {

void write_entries(WireWriter& out, uint32_t field, const Properties& entries) {
  for (const auto& [key, value] : entries) {
    WireWriter entry;
    entry.text(field::Entry::key, key);
    entry.text(field::Entry::value, value);
    out.message(field, std::move(entry));
  }
}

WireWriter tensor_message(const TensorData& tensor) {
  using Field = TensorData::Field;
  WireWriter out;
  if (!tensor.dims.empty()) out.integers(field::Tensor::dims, tensor.dims);
  out.integer(field::Tensor::data_type, static_cast<int64_t>(tensor.element));
  if (!tensor.name.empty()) out.text(field::Tensor::name, tensor.name);
  switch (tensor.field) {
    case Field::none:
      break;
    case Field::raw:
      out.reference(field::Tensor::raw_data, tensor.bytes);
      break;
    case Field::floats:
      out.reference(field::Tensor::float_data, tensor.bytes);
      break;
    case Field::doubles:
      out.reference(field::Tensor::double_data, tensor.bytes);
      break;
    case Field::int32s:
      out.integers(field::Tensor::int32_data, tensor.numbers);
      break;
    case Field::int64s:
      out.integers(field::Tensor::int64_data, tensor.numbers);
      break;
    case Field::uint64s:
      out.integers(field::Tensor::uint64_data, tensor.numbers);
      break;
    case Field::texts:
      for (const std::string& text : tensor.texts) out.text(field::Tensor::string_data, text);
      break;
    case Field::external: {
      Properties entries = {{"location", tensor.location},
                            {"offset", std::to_string(tensor.offset)}};
      if (tensor.length) entries.emplace_back("length", std::to_string(*tensor.length));
      write_entries(out, field::Tensor::external_data, entries);
      out.integer(field::Tensor::data_location, 1);
      break;
    }
  }
  return out;
}

WireWriter graph_message(const GraphData& graph);

WireWriter attribute_message(const Attribute& attribute) {
  using Type = Attribute::Type;
  WireWriter out;
  out.text(field::Attribute::name, attribute.name);
  if (!attribute.reference.empty()) out.text(field::Attribute::ref_attr_name, attribute.reference);
  switch (attribute.type) {
    case Type::number:
      out.number(field::Attribute::f, attribute.number);
      break;
    case Type::integer:
      out.integer(field::Attribute::i, attribute.integer);
      break;
    case Type::text:
      out.text(field::Attribute::s, attribute.text);
      break;
    case Type::numbers:
      out.numbers(field::Attribute::floats, attribute.numbers);
      break;
    case Type::integers:
      out.integers(field::Attribute::ints, attribute.integers);
      break;
    case Type::texts:
      for (const std::string& text : attribute.texts) out.text(field::Attribute::strings, text);
      break;
    case Type::tensor:
      if (attribute.tensor) out.message(field::Attribute::t, tensor_message(*attribute.tensor));
      break;
    case Type::graph:
      if (attribute.graph) out.message(field::Attribute::g, graph_message(*attribute.graph));
      break;
    default:
      break;
  }
  out.integer(field::Attribute::type, static_cast<int64_t>(attribute.type));
  return out;
}

WireWriter node_message(const NodeData& node) {
  WireWriter out;
  for (const std::string& input : node.inputs) out.text(field::Node::input, input);
  for (const std::string& output : node.outputs) out.text(field::Node::output, output);
  if (!node.name.empty()) out.text(field::Node::name, node.name);
  out.text(field::Node::op_type, node.op);
  for (const Attribute& attribute : node.attributes)
    out.message(field::Node::attribute, attribute_message(attribute));
  if (!node.domain.empty()) out.text(field::Node::domain, node.domain);
  if (!node.overload.empty()) out.text(field::Node::overload, node.overload);
  write_entries(out, field::Node::metadata_props, node.metadata);
  return out;
}

WireWriter value_message(const ValueInfo& value) {
  WireWriter out;
  out.text(field::ValueInfo::name, value.name);
  if (value.is_tensor) {
    WireWriter tensor;
    tensor.integer(field::TensorType::elem_type, static_cast<int64_t>(value.element));
    if (value.shape) {
      WireWriter shape;
      for (const Dimension& dimension : *value.shape) {
        WireWriter one;
        if (dimension.size)
          one.integer(field::Dimension::dim_value, *dimension.size);
        else if (!dimension.parameter.empty())
          one.text(field::Dimension::dim_param, dimension.parameter);
        shape.message(field::TensorShape::dim, std::move(one));
      }
      tensor.message(field::TensorType::shape, std::move(shape));
    }
    WireWriter type;
    type.message(field::Type::tensor_type, std::move(tensor));
    out.message(field::ValueInfo::type, std::move(type));
  }
  if (!value.doc.empty()) out.text(field::ValueInfo::doc_string, value.doc);
  return out;
}

WireWriter graph_message(const GraphData& graph) {
  WireWriter out;
  for (const NodeData& node : graph.nodes) out.message(field::Graph::node, node_message(node));
  out.text(field::Graph::name, graph.name);
  for (const TensorData& tensor : graph.initializers)
    out.message(field::Graph::initializer, tensor_message(tensor));
  if (!graph.doc.empty()) out.text(field::Graph::doc_string, graph.doc);
  for (const ValueInfo& value : graph.inputs)
    out.message(field::Graph::input, value_message(value));
  for (const ValueInfo& value : graph.outputs)
    out.message(field::Graph::output, value_message(value));
  for (const ValueInfo& value : graph.values)
    out.message(field::Graph::value_info, value_message(value));
  return out;
}

WireWriter operator_set_message(const OperatorSet& set) {
  WireWriter out;
  out.text(field::OperatorSet::domain, set.domain);
  out.integer(field::OperatorSet::version, set.version);
  return out;
}

WireWriter function_message(const FunctionData& function) {
  WireWriter out;
  out.text(field::Function::name, function.name);
  for (const std::string& input : function.inputs) out.text(field::Function::input, input);
  for (const std::string& output : function.outputs) out.text(field::Function::output, output);
  for (const std::string& attribute : function.attributes)
    out.text(field::Function::attribute, attribute);
  for (const NodeData& node : function.nodes)
    out.message(field::Function::node, node_message(node));
  for (const OperatorSet& set : function.operator_sets)
    out.message(field::Function::opset_import, operator_set_message(set));
  out.text(field::Function::domain, function.domain);
  for (const Attribute& attribute : function.defaults)
    out.message(field::Function::attribute_proto, attribute_message(attribute));
  if (!function.overload.empty()) out.text(field::Function::overload, function.overload);
  return out;
}

WireWriter model_message(const Model& model) {
  WireWriter out;
  out.integer(field::Model::ir_version, model.ir_version);
  if (!model.producer.empty()) out.text(field::Model::producer_name, model.producer);
  if (!model.producer_version.empty())
    out.text(field::Model::producer_version, model.producer_version);
  if (!model.domain.empty()) out.text(field::Model::domain, model.domain);
  if (model.version != 0) out.integer(field::Model::model_version, model.version);
  if (!model.doc.empty()) out.text(field::Model::doc_string, model.doc);
  out.message(field::Model::graph, graph_message(model.graph));
  for (const OperatorSet& set : model.operator_sets)
    out.message(field::Model::opset_import, operator_set_message(set));
  write_entries(out, field::Model::metadata_props, model.metadata);
  for (const FunctionData& function : model.functions)
    out.message(field::Model::functions, function_message(function));
  return out;
}

}  // namespace

std::string model_bytes(const Model& model) {
  std::string bytes;
  model_message(model).write(
      [&](const void* data, size_t size) { bytes.append(static_cast<const char*>(data), size); });
  return bytes;
}

void write_model(const std::string& path, const Model& model) {
  const WireWriter message = model_message(model);
  constexpr size_t most = (size_t{1} << 31) - 1;
  if (message.size() > most)
    throw Error(path, fmt::format("the model takes {}; an .onnx file holds at most 2 GB",
                                  human_bytes(static_cast<double>(message.size()))));
  write_file_atomically(path, [&](int fd) {
    message.write([&](const void* data, size_t size) { write_all(fd, data, size, path); });
  });
}

}  // namespace mase::onnx
