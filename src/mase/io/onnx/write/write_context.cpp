// SPDX-License-Identifier: Apache-2.0
// What writers of nodes ask for: inputs and parameters as their formats round them, constants, and
// the nodes themselves.
#include <algorithm>
#include <set>

#include "mase/base/broadcast.h"
#include "mase/base/text.h"
#include "mase/io/onnx/file/tensor.h"
#include "mase/io/onnx/read/operand_format.h"
#include "mase/io/onnx/write/write_quantizer.h"
#include "mase/io/onnx/write/writer.h"
#include "mase/ir/learned.h"

namespace mase::onnx {

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

std::string WriteContext::padding_mode(const std::string& mode) const {
  constexpr int64_t wraps_since = 19;
  if (mode == "replicate") return "edge";
  if (mode != "circular") return mode;
  if (operator_set() < wraps_since) fail("padding from the other end came with operator set 19");
  return "wrap";
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

std::string WriteContext::parameter(const std::string& name, const TensorView& view,
                                    const std::string& part) {
  const std::string full = tensor_name(caller().target, name);
  const std::string& as = part.empty() ? full : part;
  const WritingTrial* trial = model_.options.trial;
  const TensorData* source = trial ? trial->source(full, view) : nullptr;
  Shape shape;
  std::string written;
  if (source) {
    shape = source->dims;
    written = add_initializer(as, *source);
  } else {
    const Tensor tensor = viewed(parameter_tensor(name), view);
    shape = tensor.shape();
    written = constant(as, tensor);
  }
  std::vector<WrittenPart>& parts = model_.tensors[full];
  const bool known = std::any_of(parts.begin(), parts.end(), [&](const WrittenPart& before) {
    return before.view.rows < 0 || before.view == view;  // of a layer that is called twice
  });
  if (!known) parts.push_back({written, view});
  return rounded(written, name, shape, view);
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
  if (!gives_first_result(call_)) leave_out("data_out");
  model_.names[node_.id] =
      gives_first_result(call_) ? rounded(name, "data_out", shape(), {}) : name;
}

std::string WriteContext::rounded(const std::string& name, const std::string& operand,
                                  const Shape& shape, const TensorView& view) {
  rounded_.insert(operand);
  // What was learned is a number by now.
  const QuantizerPtr quantizer = current_quantizer(model_.graph.quantization_of(caller()),
                                                   model_.graph.module_of(caller()), operand);
  if (!quantizer) return name;
  const auto place = [&] { return fmt::format("{}: {} ({})", path(), operand, quantizer->format); };
  if (quantizer->learned) {
    const Scaled* found = quantizer->type ? quantizer->type->as<Scaled>() : nullptr;
    if (!found || found->source != Scaled::Source::given)
      throw Error(place(),
                  fmt::format("its {} is learned, and no training has found it yet",
                              quantizer->learned->name),
                  "train the network, or quantise to integer or affine");
  }
  const auto format = format_for_export(*quantizer, shape.size());
  if (!format)
    throw Error(
        place(), fmt::format("{} has no node for these numbers", flavour_name(flavour())),
        "quantise to integer, affine, bipolar, scaled_float or truncated, or to a small float");
  const auto turned = viewed(*format, view);
  if (!turned)
    throw Error(place(), "a part of it is written, and its scale varies along it",
                "quantise it with one scale");
  if (const auto reason = why_not(*turned, flavour(), operator_set()))
    throw Error(place(), *reason);
  model_.uses_qonnx = model_.uses_qonnx || flavour() == Flavour::qonnx;
  if (turned->name == "truncated") {
    const int64_t version = turned->keys.at("keeps_scale").as_bool() ? 1 : 2;
    if (model_.qonnx_version.value_or(version) != version)
      throw Error(place(), "a Trunc of QONNX's first version beside one of its second");
    model_.qonnx_version = version;
  }
  operand_ = operand;
  std::string result = write_quantizer(*this, name, *turned, shape);
  operand_.clear();
  return result;
}

bool WriteContext::has_format(const std::string& operand) const {
  return model_.graph.quantization_of(caller()).find(operand) != nullptr;
}

void WriteContext::check_formats() const {
  const auto is_taken = [&](const std::string& operand) {
    if (is_activation(operand) || has_parameter(operand)) return true;
    for (size_t i = 0; i < input_count(); ++i)
      if (input_operand(*call_.op, i, call_.module != nullptr) == operand) return true;
    return false;
  };
  for (const auto& [operand, quantizer] : model_.graph.quantization_of(caller()).operands)
    if (!rounded_.count(operand) && is_taken(operand))
      fail(fmt::format("its {} is rounded ({}), and its nodes have no place for that", operand,
                       quantizer->format),
           fmt::format("leave its {} in float", operand));
}

void WriteContext::fail(const std::string& cause, const std::string& remedy) const {
  throw Error(fmt::format("{} ({})", node_.name, call_.op->name), cause, remedy);
}

}  // namespace mase::onnx
