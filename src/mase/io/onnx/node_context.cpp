// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <cmath>

#include "mase/base/text.h"
#include "mase/io/onnx/operator.h"
#include "mase/ir/evaluate.h"

namespace mase::onnx {
namespace {

// A module path of letters, digits, dots and underscores.
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

bool is_pair(const OpRecord& op) {
  return op.attributes.find("other") && op.attributes.find("input");
}

bool is_scalar_for(const Operand& constant, const Operand& other) {
  return constant.is_constant() && constant.constant->tensor.numel() == 1 &&
         constant.rank() <= other.rank();
}

// Slices along dimension 0 that are all alike.
bool repeats(const Tensor& tensor) {
  const auto count = static_cast<size_t>(tensor.dim(0));
  const size_t size = tensor.bytes() / count;
  for (size_t i = 1; i < count; ++i)
    if (!std::equal(tensor.raw(), tensor.raw() + size, tensor.raw() + i * size)) return false;
  return true;
}

}  // namespace

std::string operator_name(const std::string& domain, const std::string& op) {
  return domain.empty() || domain == "ai.onnx" ? op : domain + "::" + op;
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

bool NodeContext::has(size_t index) const {
  return index < node_.inputs.size() && !node_.inputs[index].empty();
}

const Operand& NodeContext::input(size_t index) const {
  if (!has(index)) fail(fmt::format("input {} is missing", index));
  return model_.values.at(node_.inputs[index]);
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

std::vector<double> NodeContext::numbers(size_t index, const char* what) const {
  const Tensor& tensor = constant(index, what);
  std::vector<double> list;
  for (int64_t i = 0; i < tensor.numel(); ++i) list.push_back(tensor.item(i));
  return list;
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
  return static_cast<double>(attribute->number);
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

Operand NodeContext::materialized(const Operand& operand) {
  if (!operand.is_constant() || !operand.format) return operand;
  Operand plain = operand;
  plain.constant->tensor =
      round_tensor(*operand.format, operand.constant->tensor.to(DType::f32), place());
  plain.format.reset();
  plain.source.clear();
  return plain;
}

Operand NodeContext::as_node(const Operand& operand) {
  if (!operand.is_constant()) return operand;
  Operand result = materialized(operand);
  const std::string path = clean_path(operand.source);
  const std::string base = path.empty() ? "constant" : path;
  std::string name = base;
  for (int number = 1; model_.graph.tensor(name) || model_.graph.modules().count(name); ++number)
    name = fmt::format("{}_{}", base, number);
  const DType dtype = result.constant->tensor.dtype();
  const bool real =
      dtype == DType::f64 || dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
  const DType kept = real ? DType::f32 : dtype == DType::boolean ? dtype : DType::i64;
  result.node = model_.graph.add_constant(name, result.constant->tensor.to(kept));
  result.constant.reset();
  return result;
}

Operand NodeContext::folded(const OpRecord& op, const std::vector<Operand>& inputs,
                            const Value& attributes) {
  std::vector<Shape> shapes;
  for (const Operand& input : inputs) shapes.push_back(input.shape);
  const Shape shape = op.infer(attributes, shapes);
  constexpr int64_t most = int64_t{1} << 24;
  if (element_count(shape) > most || element_count(shape) % model_.batch == 0)
    if (element_count(shape) > 0)
      fail(fmt::format("a constant of shape {} would be computed", shape_text(shape)),
           "export the model with a dynamic batch, or with constants folded");
  model_.budget->charge(static_cast<size_t>(element_count(shape)) * sizeof(double), place());
  std::vector<Array> arrays;
  for (const Operand& input : inputs) {
    model_.budget->charge(static_cast<size_t>(input.constant->tensor.numel()) * sizeof(double),
                          place());
    arrays.push_back(Array::from(materialized(input).constant->tensor));
  }
  OpCall call{attributes, {}};
  for (const Array& array : arrays) call.inputs.push_back(&array);
  const Array out = op.eval(call);
  for (const Array& array : arrays) model_.budget->give_back(array.data.size() * sizeof(double));
  // where(condition, a, b) has the type of a.
  const Operand& like =
      inputs.size() > 1 && inputs[0].element == Element::boolean ? inputs[1] : inputs[0];
  return constant_operand(out.to_tensor(like.constant->tensor.dtype()));
}

// A model whose batch is fixed may hold constants that repeat for each entry of it.
std::vector<Operand> NodeContext::fitted_to_batch(std::vector<Operand> inputs) const {
  size_t rank = 0;
  for (const Operand& input : inputs) rank = std::max(rank, input.rank());
  const bool batched = std::any_of(inputs.begin(), inputs.end(), [&](const Operand& input) {
    return !input.is_constant() && input.rank() == rank && rank > 0 &&
           input.shape[0] == model_.batch;
  });
  if (!batched || model_.fixed_batch < 2) return inputs;
  for (Operand& input : inputs) {
    if (!input.is_constant() || input.rank() != rank || input.shape[0] != model_.fixed_batch)
      continue;
    const Tensor& tensor = input.constant->tensor;
    if (tensor.numel() == 0 || !repeats(tensor))
      fail("a constant differs from one entry of the batch to the next",
           "export the model with a dynamic batch or a batch of 1");
    Shape shape = tensor.shape();
    shape[0] = 1;
    Tensor first(shape, tensor.dtype());
    std::copy_n(tensor.raw(), first.bytes(), first.mutable_raw());
    input.constant->tensor = first;
    input.shape = shape;
  }
  return inputs;
}

Operand NodeContext::call(const std::string& op_name, const std::vector<Operand>& given,
                          Dict attributes) {
  const OpRecord& op = find_op(op_name);
  for (const Operand& input : given)
    if (input.codes) fail("it works on quantised integers, which only DequantizeLinear may take");
  std::vector<Operand> inputs = fitted_to_batch(given);
  try {
    if (std::all_of(inputs.begin(), inputs.end(), [](auto& input) { return input.is_constant(); }))
      return folded(op, inputs, validate(Value(attributes), op.attributes, ""));
    std::vector<Shape> shapes;
    std::vector<Argument> arguments;
    std::vector<std::pair<std::string, Argument>> keywords;
    const bool pair = is_pair(op) && inputs.size() == 2;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (pair && is_scalar_for(inputs[i], inputs[1 - i])) {
        const double value = materialized(inputs[i]).constant->tensor.item();
        if (i == 1)
          arguments.push_back(Argument::literal(value));
        else
          keywords.emplace_back("input", Argument::literal(value));
        attributes.set(i == 1 ? "other" : "input", value);
        continue;
      }
      const Operand node = as_node(inputs[i]);
      shapes.push_back(node.shape);
      arguments.push_back(Argument::node(node.node));
    }
    const Value checked = validate(Value(attributes), op.attributes, "");
    Operand result{.shape = op.infer(checked, shapes), .element = inputs[0].element};
    element_count(result.shape);
    const std::string scoped = inputs.size() == 1 && !op.params ? scoped_path(op.class_name) : "";
    if (!scoped.empty() || op.function.empty()) {
      std::string path = scoped.empty() ? layer_path(op.name, "") : scoped;
      if (scoped.empty())
        for (int number = 1; model_.graph.modules().count(path); ++number)
          path = fmt::format("{}_{}", layer_path(op.name, ""), number);
      model_.graph.modules()[path] = Module{.op = op.name, .attributes = checked};
      result.node = model_.graph.call_module(path, std::move(arguments));
    } else {
      if (op.max_inputs < 0) arguments = {Argument::list(std::move(arguments))};
      for (const auto& [key, value] : attributes)
        if (!pair) keywords.emplace_back(key, Argument::literal(value));
      result.node = model_.graph.call_function(op.name, std::move(arguments), std::move(keywords));
    }
    return result;
  } catch (const Error& error) {  // the op knows what is wrong, only we know where
    if (starts_with(error.place(), model_.place)) throw;
    throw Error(place(), error.cause(), error.remedy());
  }
}

Operand NodeContext::layer(const std::string& op_name, Dict attributes,
                           const std::vector<Parameter>& parameters, const Operand& given) {
  const OpRecord& op = find_op(op_name);
  if (given.codes) fail("it works on quantised integers, which only DequantizeLinear may take");
  const Operand input = as_node(given);
  try {
    Module module{.op = op.name, .attributes = validate(Value(attributes), op.attributes, "")};
    std::string sources = op.name + python_repr(module.attributes);
    bool named = true;
    std::map<std::string, OperandFormat> formats;
    std::vector<ParamSpec> specs =
        op.params ? op.params(module.attributes) : std::vector<ParamSpec>();
    for (const ParamSpec& spec : specs) {
      const auto found = std::find_if(parameters.begin(), parameters.end(),
                                      [&](const Parameter& p) { return p.name == spec.name; });
      Tensor tensor(spec.shape, spec.dtype);
      if (found != parameters.end()) {
        const Tensor& value = found->value.constant->tensor;
        if (element_count(value.shape()) != element_count(spec.shape))
          fail(fmt::format("its {} is {}, wanted is {}", spec.name, shape_text(value.shape()),
                           shape_text(spec.shape)));
        tensor = value.to(spec.dtype).reshaped(spec.shape);
        if (found->value.format) {
          const bool takes = std::count(op.operands.begin(), op.operands.end(), spec.name) > 0;
          if (takes)
            formats.emplace(spec.name, *found->value.format);
          else
            tensor = materialized(found->value).constant->tensor.reshaped(spec.shape);
        }
        named = named && !found->value.source.empty();
        sources += "|" + found->value.source;
      }
      (spec.trainable ? module.parameters : module.buffers).emplace_back(spec.name, tensor);
    }
    Operand result{.shape = op.infer(module.attributes, {input.shape})};
    element_count(result.shape);
    const std::string wanted =
        layer_path(op.name, parameters.empty() ? "" : parameters.front().value.source);
    std::string path = wanted;
    for (int number = 1; model_.graph.modules().count(path); ++number) {
      if (named && model_.sources[path] == sources && model_.formats[path] == formats) {
        result.node = model_.graph.call_module(path, {Argument::node(input.node)});
        return result;  // the same layer again
      }
      path = fmt::format("{}_{}", wanted, number);
    }
    result.node = model_.graph.add_module(path, std::move(module), {input.node});
    model_.sources[path] = sources;
    if (!formats.empty()) model_.formats[path] = std::move(formats);
    return result;
  } catch (const Error& error) {
    if (starts_with(error.place(), model_.place)) throw;
    throw Error(place(), error.cause(), error.remedy());
  }
}

Operand NodeContext::rounded(const Operand& x, const OperandFormat& format) {
  Operand result = x;
  if (x.is_constant()) {
    result = materialized(x);  // rounded twice: the first rounding is done now
    result.source = x.source;
    result.format = format;
    return result;
  }
  const std::string base = layer_path("quant", "");
  std::string path = base;
  for (int number = 1; model_.graph.modules().count(path); ++number)
    path = fmt::format("{}_{}", base, number);
  result.node = model_.graph.add_module(path, Module{.op = "identity", .attributes = Value(Dict())},
                                        {x.node});
  model_.formats[path]["data_in"] = format;
  model_.roundings.insert(result.node);
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
