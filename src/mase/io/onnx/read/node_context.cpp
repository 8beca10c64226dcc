// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

#include "mase/base/text.h"
#include "mase/io/onnx/read/operator.h"

namespace mase::onnx {
namespace {

// "['', 'blocks', 'blocks.1', 'relu']"
std::vector<std::string> python_list(const std::string& text) {
  std::vector<std::string> items;
  for (size_t at = 0; (at = text.find('\'', at)) != std::string::npos;) {
    const size_t end = text.find('\'', at + 1);
    if (end == std::string::npos) break;
    items.push_back(text.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return items;
}

// The module a node stood in, as PyTorch's exporters tell it: by metadata, or in the node's name,
// "/layer1/layer1.0/conv1/Conv".
std::string scope_of(const NodeData& node) {
  if (const std::string* scopes = find_property(node.metadata, "pkg.torch.onnx.name_scopes")) {
    const std::vector<std::string> list = python_list(*scopes);
    return list.size() < 2 ? "" : list[list.size() - 2];
  }
  if (node.name.empty() || node.name.front() != '/') return "";
  std::string path;
  const std::vector<std::string> parts = split(node.name, '/');
  for (size_t i = 1; i + 1 < parts.size(); ++i)
    path = path.empty() || starts_with(parts[i], path + ".") ? parts[i] : path + "." + parts[i];
  return path;
}

}  // namespace

double decimal_of(double value) {
  if (!std::isfinite(value)) return value;
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, static_cast<float>(value)).ptr;
  double result = 0;
  std::from_chars(text, end, result);
  return result;
}

std::string operator_name(const std::string& domain, const std::string& op) {
  return domain.empty() || domain == "ai.onnx" ? op : domain + "::" + op;
}

std::string clean_path(const std::string& text) {
  std::string path;
  for (const char c : text) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.';
    path += plain ? c : '_';
  }
  while (!path.empty() && (path.front() == '.' || path.front() == '_')) path.erase(0, 1);
  while (!path.empty() && path.back() == '.') path.pop_back();
  return path;
}

std::string NodeContext::place() const {
  std::string name = node_.name;
  if (name.empty() && !node_.outputs.empty()) name = node_.outputs.front();
  return fmt::format("{}: node '{}' ({})", model_.place, printable(name),
                     printable(operator_name(node_.domain, node_.op)));
}

void NodeContext::fail(const std::string& cause, const std::string& remedy) const {
  throw Error(place(), cause, remedy);
}

void NodeContext::needs_batch(const std::string& cause) const {
  throw BatchNeeded(place(), cause,
                    "ch predict takes the size of the batch from the given inputs; elsewhere "
                    "export the model with a fixed batch");
}

bool NodeContext::has(size_t index) const {
  return index < node_.inputs.size() && !node_.inputs[index].empty();
}

const Operand& NodeContext::value(size_t index) const {
  if (!has(index)) fail(fmt::format("input {} is missing", index));
  return model_.values.at(node_.inputs[index]);
}

const Operand& NodeContext::input(size_t index) const {
  const Operand& operand = value(index);
  if (operand.sizes) needs_batch("it computes with the size of the batch");
  return operand;
}

std::vector<Size> NodeContext::sizes(size_t index, const char* what) const {
  if (value(index).sizes) return *value(index).sizes;
  const std::vector<int64_t> numbers = integers(index, what);
  return {numbers.begin(), numbers.end()};
}

int NodeContext::uses_of(size_t index) const {
  const auto found = model_.uses.find(node_.inputs.at(index));
  return found == model_.uses.end() ? 0 : found->second;
}

const Tensor& NodeContext::constant(size_t index, const char* what) const {
  const Operand& operand = input(index);
  if (!operand.is_constant())
    fail(fmt::format("{} is computed while the network runs; it must be a constant", what));
  return operand.constant->tensor;
}

std::vector<int64_t> NodeContext::integers(size_t index, const char* what) const {
  const Tensor& tensor = constant(index, what);
  const Tensor wide = tensor.to(DType::i64);
  return {wide.data<int64_t>(), wide.data<int64_t>() + wide.numel()};
}

double NodeContext::single(size_t index, const char* what) const {
  const Tensor& tensor = constant(index, what);
  if (tensor.numel() != 1) fail(fmt::format("{} is no single number", what));
  return tensor.item();
}

std::vector<double> NodeContext::numbers(size_t index, const char* what) const {
  const Tensor& tensor = constant(index, what);
  std::vector<double> list;
  for (int64_t i = 0; i < tensor.numel(); ++i) list.push_back(tensor.item(i));
  return list;
}

std::optional<std::vector<int64_t>> NodeContext::axes(size_t index, const char* name) const {
  if (has_attribute(name)) return integer_list(name);
  if (has(index)) return integers(index, name);
  return {};
}

bool NodeContext::output_is_used(size_t index) const {
  return index < node_.outputs.size() && model_.uses.count(node_.outputs[index]) > 0 &&
         !node_.outputs[index].empty();
}

int64_t NodeContext::checked_axis(int64_t axis, size_t rank) const {
  const auto limit = static_cast<int64_t>(rank);
  if (axis < -limit || axis >= limit) fail(fmt::format("axis {} of {} dimensions", axis, rank));
  return axis < 0 ? axis + limit : axis;
}

int64_t NodeContext::integer(const std::string& name, int64_t fallback) const {
  const Attribute* attribute = node_.find(name);
  if (!attribute) return fallback;
  if (attribute->type != Attribute::Type::integer)
    fail(fmt::format("the attribute '{}' is no whole number", name));
  return attribute->integer;
}

double NodeContext::number(const std::string& name, double fallback) const {
  const Attribute* attribute = node_.find(name);
  if (!attribute) return fallback;
  if (attribute->type == Attribute::Type::integer) return static_cast<double>(attribute->integer);
  if (attribute->type != Attribute::Type::number)
    fail(fmt::format("the attribute '{}' is no number", name));
  return decimal_of(static_cast<double>(attribute->number));
}

std::string NodeContext::text(const std::string& name, const std::string& fallback) const {
  const Attribute* attribute = node_.find(name);
  if (!attribute) return fallback;
  if (attribute->type != Attribute::Type::text)
    fail(fmt::format("the attribute '{}' is no text", name));
  return attribute->text;
}

std::vector<int64_t> NodeContext::integer_list(const std::string& name,
                                               std::vector<int64_t> fallback) const {
  const Attribute* attribute = node_.find(name);
  if (!attribute) return fallback;
  if (attribute->type != Attribute::Type::integers)
    fail(fmt::format("the attribute '{}' is no list of whole numbers", name));
  return attribute->integers;
}

Operand NodeContext::constant_operand(Tensor tensor) const {
  Operand operand{.shape = tensor.shape(), .element = element_for(tensor.dtype())};
  operand.constant = Constant{std::move(tensor), operand.element};
  return operand;
}

Operand NodeContext::scalar(double value) const {
  return constant_operand(Tensor::scalar(static_cast<float>(value)));
}

Operand NodeContext::whole_number(int64_t value) const {
  return constant_operand(Tensor::of<int64_t>({}, std::span<const int64_t>(&value, 1)));
}

Operand NodeContext::sizes_operand(const Shape& shape, std::vector<Size> sizes,
                                   Element element) const {
  Operand operand{.shape = shape, .element = element};
  if (Sizes(sizes.begin(), sizes.end()).has_batch()) {
    operand.sizes = std::make_shared<const std::vector<Size>>(std::move(sizes));
    return operand;
  }
  const std::vector<int64_t> numbers(sizes.begin(), sizes.end());
  const Tensor tensor = Tensor::of<int64_t>(shape, std::span<const int64_t>(numbers));
  operand.constant = Constant{tensor.to(dtype_of(element).value()), element};
  return operand;
}

Operand NodeContext::zeros(const Shape& shape) {
  constexpr int64_t most = int64_t{1} << 24;
  const int64_t count = element_count(shape);
  if (count > most) fail(fmt::format("a constant of shape {} would be made", shape_text(shape)));
  model_.budget->charge(static_cast<size_t>(count) * sizeof(float), place());
  return constant_operand(Tensor(shape));
}

Operand NodeContext::like(const Operand& constant, Tensor tensor) const {
  Operand result = constant_operand(std::move(tensor));
  result.element = result.constant->element = constant.element;
  result.source = constant.source;
  return result;
}

void NodeContext::result(size_t index, Operand operand) {
  if (index >= node_.outputs.size() || node_.outputs[index].empty()) return;
  if (!model_.values.emplace(node_.outputs[index], std::move(operand)).second)
    fail(fmt::format("two nodes give '{}'", printable(node_.outputs[index])));
}

std::string NodeContext::layer_path(const std::string& op, const std::string& weight) const {
  std::string path;
  if (ends_with(weight, ".weight")) path = clean_path(weight.substr(0, weight.size() - 7));
  if (path.empty()) path = clean_path(scope_of(node_));
  if (path.empty() && !starts_with(node_.name, "/")) path = clean_path(node_.name);
  return path.empty() ? op : path;
}

std::string NodeContext::scoped_path(const std::string& class_name) const {
  const std::string* classes = find_property(node_.metadata, "pkg.torch.onnx.class_hierarchy");
  if (!classes || class_name.empty()) return "";
  const std::vector<std::string> list = python_list(*classes);
  if (list.size() < 2 || !ends_with(list[list.size() - 2], "." + class_name)) return "";
  const std::string path = clean_path(scope_of(node_));
  return path.empty() || model_.graph.modules().count(path) ? "" : path;
}

}  // namespace mase::onnx
