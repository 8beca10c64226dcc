// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/file/read_model.h"

#include <cstring>
#include <utility>

#include "mase/base/text.h"
#include "mase/io/onnx/file/fields.h"
#include "mase/io/onnx/file/wire.h"

namespace mase::onnx {
namespace {

using Owner = std::shared_ptr<const void>;

// A vector that grows holds up to twice its elements: that is what a claim may cost.
template <class T>
T& grow(std::vector<T>& list, const WireReader& in) {
  in.charge(2 * sizeof(T));
  return list.emplace_back();
}

void read_entry(WireReader in, Properties& to) {
  auto& [key, value] = grow(to, in);
  while (in.next()) {
    if (in.field() == field::Entry::key) key = in.text();
    if (in.field() == field::Entry::value) value = in.bytes_text();
  }
}

// Values given one by one are gathered in memory of their own.
void add_values(TensorData& tensor, const WireReader& in, TensorData::Field field, size_t size,
                const Owner& owner) {
  if (tensor.field == TensorData::Field::none && in.is_bytes()) {
    tensor.bytes = in.bytes();
    tensor.owner = owner;
    tensor.field = field;
    return;
  }
  const bool number = !in.is_bytes();
  if (number && field == TensorData::Field::doubles)
    in.fail("double_data is not packed", "write the model again with a newer onnx");
  const std::span<const std::byte> more = number ? std::span<const std::byte>() : in.bytes();
  const size_t added = number ? size : more.size();
  // Doubled in size as it fills, so that a million numbers one by one are not a million copies.
  struct Gathered {
    std::vector<std::byte> bytes;
  };
  auto gathered = std::static_pointer_cast<const Gathered>(tensor.owner);
  const bool own = tensor.field == field && gathered && tensor.owner != owner &&
                   gathered->bytes.data() == tensor.bytes.data();
  std::shared_ptr<Gathered> to;
  if (own) {
    to = std::const_pointer_cast<Gathered>(gathered);
  } else {
    in.charge(2 * tensor.bytes.size());
    to = std::make_shared<Gathered>();
    to->bytes.assign(tensor.bytes.begin(), tensor.bytes.end());
  }
  in.charge(2 * added);
  const size_t before = to->bytes.size();
  to->bytes.resize(before + added);
  if (number) {
    const float value = in.number();
    std::memcpy(to->bytes.data() + before, &value, sizeof value);
  } else if (!more.empty()) {
    std::memcpy(to->bytes.data() + before, more.data(), more.size());
  }
  tensor.bytes = to->bytes;
  tensor.owner = to;
  tensor.field = field;
}

void set_field(TensorData& tensor, TensorData::Field field, const WireReader& in) {
  if (tensor.field != TensorData::Field::none && tensor.field != field)
    in.fail(fmt::format("the tensor '{}' gives its values twice", printable(tensor.name)),
            "the file is damaged or hostile");
  tensor.field = field;
}

void read_external(const Properties& entries, TensorData& tensor, const WireReader& in) {
  const auto number = [&](const std::string& text) {
    const auto value = parse_integer(text);
    if (!value || *value < 0)
      in.fail(fmt::format("the tensor '{}' stands at '{}' of its data file", printable(tensor.name),
                          printable(text)));
    return static_cast<uint64_t>(*value);
  };
  for (const auto& [key, value] : entries) {
    if (key == "location") tensor.location = value;
    if (key == "offset") tensor.offset = number(value);
    if (key == "length") tensor.length = number(value);
  }
}

void read_tensor(WireReader in, TensorData& tensor, const Owner& owner) {
  using Field = TensorData::Field;
  Properties entries;
  bool external = false;
  while (in.next()) {
    switch (in.field()) {
      case field::Tensor::dims:
        in.integers(tensor.dims);
        break;
      case field::Tensor::data_type:
        tensor.element = static_cast<Element>(in.integer());
        break;
      case field::Tensor::segment:
        in.fail("a tensor in segments cannot be read", "save the model again with a newer onnx");
      case field::Tensor::name:
        tensor.name = in.text();
        break;
      case field::Tensor::raw_data:
        set_field(tensor, Field::raw, in);
        tensor.bytes = in.bytes();
        tensor.owner = owner;
        break;
      case field::Tensor::float_data:
        if (tensor.field != Field::none) set_field(tensor, Field::floats, in);
        add_values(tensor, in, Field::floats, sizeof(float), owner);
        break;
      case field::Tensor::double_data:
        if (tensor.field != Field::none) set_field(tensor, Field::doubles, in);
        add_values(tensor, in, Field::doubles, sizeof(double), owner);
        break;
      case field::Tensor::int32_data:
        set_field(tensor, Field::int32s, in);
        in.integers(tensor.numbers);
        break;
      case field::Tensor::int64_data:
        set_field(tensor, Field::int64s, in);
        in.integers(tensor.numbers);
        break;
      case field::Tensor::uint64_data:
        set_field(tensor, Field::uint64s, in);
        in.integers(tensor.numbers);
        break;
      case field::Tensor::string_data:
        set_field(tensor, Field::texts, in);
        grow(tensor.texts, in) = in.bytes_text();
        break;
      case field::Tensor::external_data:
        read_entry(in.message(), entries);
        break;
      case field::Tensor::data_location:
        external = in.integer() == 1;
        break;
      default:
        break;
    }
  }
  if (!external) return;
  set_field(tensor, Field::external, in);
  read_external(entries, tensor, in);
}

void read_graph(WireReader in, GraphData& graph, const Owner& owner);

void read_attribute(WireReader in, Attribute& attribute, const Owner& owner) {
  using Type = Attribute::Type;
  Type seen = Type::undefined;
  const auto saw = [&](Type type) {
    if (seen != Type::undefined && seen != type)
      in.fail(fmt::format("the attribute '{}' has two values", printable(attribute.name)));
    seen = type;
  };
  while (in.next()) {
    switch (in.field()) {
      case field::Attribute::name:
        attribute.name = in.text();
        break;
      case field::Attribute::type:
        attribute.type = static_cast<Type>(in.integer());
        break;
      case field::Attribute::ref_attr_name:
        attribute.reference = in.text();
        break;
      case field::Attribute::f:
        saw(Type::number);
        attribute.number = in.number();
        break;
      case field::Attribute::i:
        saw(Type::integer);
        attribute.integer = in.integer();
        break;
      case field::Attribute::s:
        saw(Type::text);
        attribute.text = in.bytes_text();
        break;
      case field::Attribute::floats:
        saw(Type::numbers);
        in.numbers(attribute.numbers);
        break;
      case field::Attribute::ints:
        saw(Type::integers);
        in.integers(attribute.integers);
        break;
      case field::Attribute::strings:
        saw(Type::texts);
        grow(attribute.texts, in) = in.bytes_text();
        break;
      case field::Attribute::t: {
        saw(Type::tensor);
        in.charge(sizeof(TensorData));
        auto tensor = std::make_shared<TensorData>();
        read_tensor(in.message(), *tensor, owner);
        attribute.tensor = std::move(tensor);
        break;
      }
      case field::Attribute::g: {
        saw(Type::graph);
        in.charge(sizeof(GraphData));
        auto graph = std::make_shared<GraphData>();
        read_graph(in.message(), *graph, owner);
        attribute.graph = std::move(graph);
        break;
      }
      case field::Attribute::tensors:
        saw(Type::tensors);
        break;
      case field::Attribute::graphs:
        saw(Type::graphs);
        break;
      default:
        break;
    }
  }
  // Files of the first years leave the type out.
  if (attribute.type == Type::undefined) attribute.type = seen;
  const bool empty = seen == Type::undefined;  // an empty list, text or zero writes nothing
  if (!empty && attribute.type != seen)
    in.fail(
        fmt::format("the attribute '{}' says one type and has another", printable(attribute.name)));
}

void read_node(WireReader in, NodeData& node, const Owner& owner) {
  while (in.next()) {
    switch (in.field()) {
      case field::Node::input:
        grow(node.inputs, in) = in.text();
        break;
      case field::Node::output:
        grow(node.outputs, in) = in.text();
        break;
      case field::Node::name:
        node.name = in.text();
        break;
      case field::Node::op_type:
        node.op = in.text();
        break;
      case field::Node::domain:
        node.domain = in.text();
        break;
      case field::Node::overload:
        node.overload = in.text();
        break;
      case field::Node::attribute:
        read_attribute(in.message(), grow(node.attributes, in), owner);
        break;
      case field::Node::metadata_props:
        read_entry(in.message(), node.metadata);
        break;
      default:
        break;
    }
  }
  if (node.domain == "ai.onnx") node.domain.clear();
  for (size_t i = 0; i < node.attributes.size(); ++i)
    for (size_t k = 0; k < i; ++k)
      if (node.attributes[i].name == node.attributes[k].name)
        in.fail(fmt::format("the node '{}' has two attributes '{}'", printable(node.name),
                            printable(node.attributes[i].name)));
}

void read_shape(WireReader in, std::vector<Dimension>& shape) {
  while (in.next()) {
    if (in.field() != field::TensorShape::dim) continue;
    Dimension& dimension = grow(shape, in);
    WireReader inner = in.message();
    while (inner.next()) {
      if (inner.field() == field::Dimension::dim_value) dimension.size = inner.integer();
      if (inner.field() == field::Dimension::dim_param) dimension.parameter = inner.bytes_text();
    }
  }
}

void read_value_info(WireReader in, ValueInfo& info) {
  while (in.next()) {
    if (in.field() == field::ValueInfo::name) info.name = in.text();
    if (in.field() == field::ValueInfo::doc_string) info.doc = in.bytes_text();
    if (in.field() != field::ValueInfo::type) continue;
    info.is_tensor = false;
    for (WireReader type = in.message(); type.next();) {
      if (type.field() != field::Type::tensor_type) continue;
      info.is_tensor = true;
      for (WireReader tensor = type.message(); tensor.next();) {
        if (tensor.field() == field::TensorType::elem_type)
          info.element = static_cast<Element>(tensor.integer());
        if (tensor.field() == field::TensorType::shape)
          read_shape(tensor.message(), info.shape.emplace());
      }
    }
  }
}

void read_graph(WireReader in, GraphData& graph, const Owner& owner) {
  while (in.next()) {
    switch (in.field()) {
      case field::Graph::node:
        read_node(in.message(), grow(graph.nodes, in), owner);
        break;
      case field::Graph::name:
        graph.name = in.text();
        break;
      case field::Graph::doc_string:
        graph.doc = in.bytes_text();
        break;
      case field::Graph::initializer:
        read_tensor(in.message(), grow(graph.initializers, in), owner);
        break;
      case field::Graph::input:
        read_value_info(in.message(), grow(graph.inputs, in));
        break;
      case field::Graph::output:
        read_value_info(in.message(), grow(graph.outputs, in));
        break;
      case field::Graph::value_info:
        read_value_info(in.message(), grow(graph.values, in));
        break;
      case field::Graph::sparse_initializer:
        ++graph.sparse_initializers;
        break;
      default:
        break;
    }
  }
}

void read_operator_set(WireReader in, OperatorSet& set) {
  while (in.next()) {
    if (in.field() == field::OperatorSet::domain) set.domain = in.text();
    if (in.field() == field::OperatorSet::version) set.version = in.integer();
  }
}

void read_function(WireReader in, FunctionData& function, const Owner& owner) {
  while (in.next()) {
    switch (in.field()) {
      case field::Function::name:
        function.name = in.text();
        break;
      case field::Function::domain:
        function.domain = in.text();
        break;
      case field::Function::overload:
        function.overload = in.text();
        break;
      case field::Function::input:
        grow(function.inputs, in) = in.text();
        break;
      case field::Function::output:
        grow(function.outputs, in) = in.text();
        break;
      case field::Function::attribute:
        grow(function.attributes, in) = in.text();
        break;
      case field::Function::attribute_proto:
        read_attribute(in.message(), grow(function.defaults, in), owner);
        break;
      case field::Function::node:
        read_node(in.message(), grow(function.nodes, in), owner);
        break;
      case field::Function::opset_import:
        read_operator_set(in.message(), grow(function.operator_sets, in));
        break;
      default:
        break;
    }
  }
}

}  // namespace

bool looks_like_model(std::span<const std::byte> bytes) {
  // Every writer puts ir_version, a small number, first; what follows is a text or another number.
  return bytes.size() > 3 && bytes[0] == std::byte{0x08} && bytes[1] > std::byte{0} &&
         bytes[1] < std::byte{0x40} &&
         (bytes[2] == std::byte{0x12} || bytes[2] == std::byte{0x1A} ||
          bytes[2] == std::byte{0x22} || bytes[2] == std::byte{0x28} ||
          bytes[2] == std::byte{0x32} || bytes[2] == std::byte{0x3A} ||
          bytes[2] == std::byte{0x42});
}

Model read_model(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                 const std::string& place, MemoryBudget& budget) {
  const WireFile file{bytes, place, &budget};
  WireReader in(file);
  Model model;
  bool has_graph = false;
  while (in.next()) {
    switch (in.field()) {
      case field::Model::ir_version:
        model.ir_version = in.integer();
        break;
      case field::Model::producer_name:
        model.producer = in.bytes_text();
        break;
      case field::Model::producer_version:
        model.producer_version = in.bytes_text();
        break;
      case field::Model::domain:
        model.domain = in.bytes_text();
        break;
      case field::Model::model_version:
        model.version = in.integer();
        break;
      case field::Model::doc_string:
        model.doc = in.bytes_text();
        break;
      case field::Model::opset_import:
        read_operator_set(in.message(), grow(model.operator_sets, in));
        break;
      case field::Model::metadata_props:
        read_entry(in.message(), model.metadata);
        break;
      case field::Model::functions:
        read_function(in.message(), grow(model.functions, in), owner);
        break;
      case field::Model::graph:
        if (std::exchange(has_graph, true)) in.fail("the model has two graphs");
        read_graph(in.message(), model.graph, owner);
        break;
      default:
        break;
    }
  }
  if (!has_graph)
    throw Error(place, "is no ONNX model: it has no graph",
                "the file is damaged or of another kind");
  return model;
}

TensorData read_tensor_message(std::span<const std::byte> bytes, std::shared_ptr<const void> owner,
                               const std::string& place, MemoryBudget& budget) {
  const WireFile file{bytes, place, &budget};
  TensorData tensor;
  read_tensor(WireReader(file), tensor, owner);
  return tensor;
}

}  // namespace mase::onnx
