// SPDX-License-Identifier: Apache-2.0
#include "mase/io/onnx/export.h"

#include <algorithm>
#include <array>
#include <set>

#include "mase/base/broadcast.h"
#include "mase/base/text.h"
#include "mase/io/onnx/operand_format.h"
#include "mase/io/onnx/own_graph.h"
#include "mase/io/onnx/tensor.h"
#include "mase/io/onnx/tensor_moves.h"
#include "mase/io/onnx/write_quantizer.h"
#include "mase/io/onnx/writer.h"
#include "mase/ir/layer_text.h"
#include "mase/ir/value_type.h"

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

const Shape& WriteContext::input_shape(size_t index) const {
  return model_.shapes[static_cast<size_t>(call_.inputs.at(index))];
}
const Shape& WriteContext::shape() const { return model_.shapes[static_cast<size_t>(node_.id)]; }

Shape WriteContext::open_shape() const {
  Shape open = shape();
  const Shape& further = model_.further[static_cast<size_t>(node_.id)];
  for (size_t i = 0; i < open.size(); ++i)
    if (open[i] != further[i]) open[i] = -1;
  if (std::count(open.begin(), open.end(), -1) > 1) fail("two sizes depend on the batch");
  return open;
}

std::vector<int64_t> WriteContext::numbers(const char* attribute, size_t count) const {
  const Value& value = call_.attributes[attribute];
  if (value.is_int()) return std::vector<int64_t>(count, value.as_int());
  std::vector<int64_t> list = value.as_int_list(attribute);
  if (list.size() == 1) list.resize(count, list.front());
  return list;
}

std::string WriteContext::input(size_t index) {
  const NodeId id = call_.inputs.at(index);
  return rounded(model_.names.at(id), input_operand(*call_.op, index, call_.module != nullptr),
                 model_.shapes[static_cast<size_t>(id)], {});
}

const Node& WriteContext::caller() const { return model_.graph.node(call_.caller); }

std::string WriteContext::path() const {
  return caller().kind == NodeKind::call_module ? caller().target : node_.name;
}

bool WriteContext::has_parameter(const std::string& name) const {
  return call_.module && call_.module->find(name);
}

Tensor WriteContext::parameter_tensor(const std::string& name) const {
  const Tensor* tensor = call_.module ? call_.module->find(name) : nullptr;
  if (!tensor) fail(fmt::format("it has no {}", name));
  return *tensor;
}

std::string WriteContext::parameter(const std::string& name, const std::vector<int64_t>& order) {
  const std::string full = tensor_name(caller().target, name);
  const WritingTrial* trial = model_.options.trial;
  const TensorData* source = trial ? trial->source(full, order) : nullptr;
  Shape shape;
  std::string written;
  if (source) {
    shape = source->dims;
    written = add_initializer(full, *source);
  } else {
    Tensor tensor = parameter_tensor(name);
    if (!order.empty()) tensor = transposed(tensor, order);
    shape = tensor.shape();
    written = constant(full, tensor);
  }
  model_.tensors.emplace(full, WrittenTensor{written, order});
  return rounded(written, name, shape, order);
}

Tensor WriteContext::table(const Shape& shape, float value) const {
  if (const WritingTrial* trial = model_.options.trial)
    trial->budget->charge(static_cast<size_t>(element_count(shape)) * sizeof(float), node_.name);
  Tensor tensor(shape);
  if (value != 0) std::fill_n(tensor.mutable_data<float>(), tensor.numel(), value);
  return tensor;
}

// Readers of QONNX make identifiers of names (hls4ml confuses "a.b" with "a_b"); the layer's path
// stands in the node's metadata.
std::string WriteContext::plain_name(const std::string& name) const {
  if (flavour() != Flavour::qonnx) return name;
  const std::string plain = replace_all(replace_all(name, ".", "_"), "/", "_");
  return plain.empty() || plain.front() != '_' ? plain : plain.substr(1);
}

std::string WriteContext::constant(const std::string& name, const Tensor& tensor) {
  return add_initializer(name, tensor_data(name, tensor));
}

std::string WriteContext::add_initializer(const std::string& name, TensorData data) {
  const std::string base = plain_name(name);
  std::string unique = base;
  for (int number = 1;; ++number) {
    const auto [place, added] = model_.constants.emplace(unique, "");
    if (added) break;
    // A layer that is called twice has its tensors once.
    for (const TensorData& known : model_.model.graph.initializers)
      if (known.name == unique && known.dims == data.dims && known.element == data.element &&
          std::equal(known.bytes.begin(), known.bytes.end(), data.bytes.begin(), data.bytes.end()))
        return unique;
    unique = fmt::format("{}_{}", base, number);
  }
  data.name = unique;
  model_.known[unique] = {data.dims, data.dims};
  model_.model.graph.initializers.push_back(std::move(data));
  return unique;
}

std::string WriteContext::integers(const std::string& name, const std::vector<int64_t>& values) {
  return constant(
      node_.name + "." + name,
      Tensor::of<int64_t>({static_cast<int64_t>(values.size())}, std::span<const int64_t>(values)));
}

std::string WriteContext::number(double value) {
  return constant(fmt::format("number_{}", value), Tensor::scalar(static_cast<float>(value)));
}

// What follows from the inputs: quantisers and activations keep a shape, sums broadcast.
void WriteContext::know(const NodeData& node) {
  static const std::set<std::string> same = {"Quant", "BipolarQuant", "FloatQuant", "Relu",
                                             "Sqrt",  "Sigmoid",      "Tanh",       "Erf",
                                             "Exp",   "Softmax"};
  const auto of = [&](size_t index) -> const std::pair<Shape, Shape>* {
    if (index >= node.inputs.size()) return nullptr;
    const auto found = model_.known.find(node.inputs[index]);
    return found == model_.known.end() ? nullptr : &found->second;
  };
  const auto* a = of(0);
  const auto* b = of(1);
  if (!a) return;
  std::optional<std::pair<Shape, Shape>> result;
  if (same.count(node.op)) {
    result = *a;
  } else if (b && (node.op == "Add" || node.op == "Sub" || node.op == "Mul" || node.op == "Div")) {
    const auto first = broadcast_shape(a->first, b->first);
    const auto second = broadcast_shape(a->second, b->second);
    if (first && second) result = std::pair(*first, *second);
  } else if (b && node.op == "MatMul" && b->first.size() == 2 && !a->first.empty()) {
    result = *a;
    result->first.back() = result->second.back() = b->first.back();
  }
  if (result) model_.known[node.outputs.front()] = *result;
}

std::string WriteContext::add(const std::string& op, std::vector<std::string> inputs,
                              std::vector<Attribute> attributes, const std::string& domain,
                              size_t which, size_t results) {
  NodeData node{.op = op, .domain = domain, .inputs = std::move(inputs)};
  const size_t number = model_.model.graph.nodes.size();
  const bool module = caller().kind == NodeKind::call_module;
  node.name = plain_name(fmt::format("/{}/{}_{}", path(), op, number));
  const std::string output = fmt::format("{}_{}_{}", node_.name, op, number);
  for (size_t i = 0; i < results; ++i)
    node.outputs.push_back(i == which ? output : fmt::format("{}_unused{}", output, i));
  node.attributes = std::move(attributes);
  // Where the node stood, in the words of PyTorch's exporter.
  if (module)
    node.metadata = {
        {"pkg.torch.onnx.name_scopes", fmt::format("['', '{}', '{}']", path(), node_.name)},
        {"pkg.torch.onnx.class_hierarchy",
         fmt::format("['', 'torch.nn.{}', '{}']", call_.op->class_name, call_.op->name)}};
  if (!operand_.empty()) node.metadata.emplace_back(operand_property, operand_);
  know(node);
  model_.model.graph.nodes.push_back(std::move(node));
  return output;
}

std::string WriteContext::mean(const std::string& x, const std::vector<int64_t>& axes, bool keep) {
  std::vector<std::string> inputs = {x};
  std::vector<Attribute> attributes = {integer_attribute("keepdims", keep)};
  constexpr int64_t axes_are_inputs = 18;
  if (operator_set() >= axes_are_inputs)
    inputs.push_back(integers("axes", axes));
  else
    attributes.push_back(integers_attribute("axes", axes));
  return add("ReduceMean", inputs, attributes);
}

void WriteContext::result(const std::string& name) {
  if (model_.elements[static_cast<size_t>(node_.id)] == DType::f32)
    model_.known[name] = {shape(), model_.further[static_cast<size_t>(node_.id)]};
  model_.names[node_.id] = rounded(name, "data_out", shape(), {});
}

std::string WriteContext::rounded(const std::string& name, const std::string& operand,
                                  const Shape& shape, const std::vector<int64_t>& order) {
  const Quantizer* quantizer = model_.graph.quantization_of(caller()).find(operand);
  if (!quantizer) return name;
  const auto place = [&] { return fmt::format("{}: {} ({})", path(), operand, quantizer->format); };
  if (quantizer->learned)
    throw Error(place(), "its scale is a parameter that is still trained",
                "run ch pass freeze first");
  const auto format = format_for_export(*quantizer);
  if (!format)
    throw Error(
        place(), fmt::format("{} has no node for these numbers", flavour_name(flavour())),
        "quantise to integer, affine, bipolar, scaled_float or truncated, or to a small float");
  const OperandFormat turned = order.empty() ? *format : permuted(*format, order, order.size());
  if (const auto reason = why_not(turned, flavour(), operator_set())) throw Error(place(), *reason);
  model_.uses_qonnx = model_.uses_qonnx || flavour() == Flavour::qonnx;
  if (turned.name == "truncated") {
    const int64_t version = turned.keys.at("keeps_scale").as_bool() ? 1 : 2;
    if (model_.qonnx_version.value_or(version) != version)
      throw Error(place(), "a Trunc of QONNX's first version beside one of its second");
    model_.qonnx_version = version;
  }
  operand_ = operand;
  std::string result = write_quantizer(*this, name, turned, shape);
  operand_.clear();
  return result;
}

void WriteContext::fail(const std::string& cause, const std::string& remedy) const {
  throw Error(fmt::format("{} ({})", node_.name, call_.op->name), cause, remedy);
}

Model export_graph(const Graph& graph, const ExportOptions& options) {
  if (options.operator_set < oldest_written || options.operator_set > newest_written)
    throw Error("--opset", fmt::format("operator set {} is not written", options.operator_set),
                fmt::format("give {} to {}", oldest_written, newest_written));
  Export exported{graph, options};
  exported.shapes = infer_shapes(graph, 2);
  exported.further = infer_shapes(graph, 3);
  exported.elements = infer_elements(graph);
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
      exported.tensors.emplace(node.target, WrittenTensor{node.target});
      model.graph.initializers.push_back(tensor_data(node.target, *graph.tensor(node.target)));
    } else if (node.kind == NodeKind::output) {
      for (const NodeId result : graph.outputs()) {
        const auto from = static_cast<size_t>(result);
        model.graph.outputs.push_back(value_info(exported.names.at(result), exported.shapes[from],
                                                 exported.further[from],
                                                 element_for(exported.elements[from])));
      }
    } else {
      if (!has_value(graph, node)) continue;  // what takes a part of it writes it
      BoundCall call = bind_value(graph, node);
      const OnnxWriter* writer = Registry<OnnxWriter>::instance().find(call.op->name);
      if (!writer)
        throw Error(node.name,
                    fmt::format("ONNX files of ours have no node for '{}'", call.op->name));
      WriteContext context(exported, node, std::move(call));
      writer->write(context);
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
