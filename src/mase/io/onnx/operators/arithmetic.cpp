// SPDX-License-Identifier: Apache-2.0
// Operators of two or more tensors that broadcast. A constant added to the result of a layer that
// has no bias is its bias:
//
//   MatMul(x, W) + b   =>   Linear(x)
#include <cmath>
#include <functional>

#include "mase/io/onnx/read/quantize_nodes.h"

namespace mase::onnx::arithmetic_operators {
namespace {

// The layer whose result this is, if nothing else takes it.
Module* sole_layer(NodeContext& context, size_t index) {
  const Operand& operand = context.input(index);
  if (operand.is_constant() || operand.node < 0 || context.uses_of(index) != 1) return nullptr;
  Graph& graph = context.model().graph;
  const Node& node = graph.node(operand.node);
  if (node.kind != NodeKind::call_module || !graph.users(node.id).empty()) return nullptr;
  return graph.module_of(node);
}

// One number for each channel of a result, and nothing along its other dimensions.
bool is_per_channel(const Operand& constant, const Operand& result, int64_t channel_axis) {
  const auto rank = static_cast<int64_t>(result.rank());
  const int64_t axis = channel_axis < 0 ? channel_axis + rank : channel_axis;
  const int64_t shift = rank - static_cast<int64_t>(constant.rank());
  if (shift < 0 || result.shape[static_cast<size_t>(axis)] != constant.constant->tensor.numel())
    return false;
  for (int64_t i = 0; i < static_cast<int64_t>(constant.rank()); ++i)
    if (constant.shape[static_cast<size_t>(i)] != 1 && i + shift != axis) return false;
  return true;
}

bool add_as_bias(NodeContext& context, size_t layer_index) {
  const Operand& result = context.input(layer_index);
  const Operand& bias = context.input(1 - layer_index);
  Module* module = sole_layer(context, layer_index);
  if (!module || !bias.is_constant()) return false;
  const OpRecord& op = find_op(module->op);
  if (!op.product || module->find("bias") || !module->attributes["bias"].is_bool()) return false;
  if (!is_per_channel(bias, result, op.product->channel_axis)) return false;
  const std::string path = context.model().graph.node(result.node).target;
  module->attributes["bias"] = true;
  for (const ParamSpec& spec : op.params(module->attributes)) {
    if (spec.name != "bias") continue;
    module->parameters.emplace_back("bias",
                                    bias.constant->tensor.to(DType::f32).reshaped(spec.shape));
  }
  if (bias.format) {
    OperandFormat format = *bias.format;
    if (format.axis) format.axis = 0;
    if (format.affine && format.affine->axis) format.affine->axis = 0;
    context.model().formats[path].insert_or_assign("bias", format);
  }
  // A second call of the weights alone is another layer.
  context.model().sources[path] += "+" + bias.source;
  context.result(0, result);
  return true;
}

// [batch, S, D] + a constant [1, S, D] or [S, D]: a row for each position.
bool add_as_positions(NodeContext& context, size_t index) {
  const Operand& x = context.input(index);
  const Operand& rows = context.input(1 - index);
  if (x.is_constant() || x.codes || !rows.is_constant() || x.rank() != 3 || rows.format)
    return false;
  if (!x.shape[0].is_batch() || x.shape[1].has_batch() || x.shape[2].has_batch()) return false;
  Shape shape = rows.shape;
  if (shape.size() == 3 && shape[0] == 1) shape.erase(shape.begin());
  if (shape != Shape{x.shape[1], x.shape[2]} || shape[0] < 2) return false;
  Operand table = rows;
  table.constant->tensor = rows.constant->tensor.reshaped(shape);
  // A table for longer inputs than these stays whole.
  if (rows.table && rows.rank() == 2) table.constant->tensor = *rows.table;
  shape = table.shape = table.constant->tensor.shape();
  context.result(0, context.layer("position_embedding",
                                  Dict{{"num_embeddings", shape[0]}, {"embedding_dim", shape[1]}},
                                  {{"weight", table}}, x));
  return true;
}

// Two lists of whole numbers, at least one of which depends on the batch: what comes of each pair,
// if that is known whatever the batch is.
bool sizes_by_pairs(NodeContext& context,
                    const std::function<std::optional<Size>(const Size&, const Size&)>& rule,
                    std::optional<Element> element = {}) {
  const Operand &a = context.value(0), &b = context.value(1);
  if (!a.sizes && !b.sizes) return false;
  const auto usable = [](const Operand& x) {
    return x.sizes || (x.is_constant() && !is_real(x.element) && !x.repeated);
  };
  constexpr const char* why = "it computes with the size of the batch";
  if (context.input_count() > 2 || !usable(a) || !usable(b)) context.needs_batch(why);
  const std::vector<Size> left = context.sizes(0, "a size"), right = context.sizes(1, "a size");
  if (left.size() != right.size() && left.size() != 1 && right.size() != 1)
    context.needs_batch(why);
  std::vector<Size> results;
  for (size_t i = 0; i < std::max(left.size(), right.size()); ++i) {
    const auto one = rule(left[left.size() == 1 ? 0 : i], right[right.size() == 1 ? 0 : i]);
    if (!one) context.needs_batch(why);
    results.push_back(*one);
  }
  const bool like_a =
      left.size() > right.size() || (left.size() == right.size() && a.rank() >= b.rank());
  context.result(0, context.sizes_operand(like_a ? a.shape : b.shape, std::move(results),
                                          element.value_or(a.element)));
  return true;
}

std::optional<Size> larger_of(const Size& a, const Size& b) {
  const auto order = order_of(a, b);
  if (!order) return {};
  return *order > 0 ? a : b;
}

std::optional<Size> smaller_of(const Size& a, const Size& b) {
  const auto order = order_of(a, b);
  if (!order) return {};
  return *order < 0 ? a : b;
}

// What is left of c * batch + d, all of c being multiples of the divisor.
std::optional<Size> rest_of(const Size& a, const Size& b) {
  if (b.has_batch() || b.constant < 1 || a.batches % b.constant != 0 || a.constant < 0 ||
      a.batches < 0)
    return {};
  return Size(a.constant % b.constant);
}

void add(NodeContext& context) {
  if (add_as_bias(context, 0) || add_as_bias(context, 1)) return;
  if (add_as_positions(context, 0) || add_as_positions(context, 1)) return;
  const Operand sum = context.call("add", {context.input(0), context.input(1)});
  context.result(0, wrapped(context, sum, context.input(0).element));
}

// x * sigmoid(x) and x * hardsigmoid(x) have names of their own.
bool multiply_as_gate(NodeContext& context, size_t gate_index) {
  const Operand& gate = context.input(gate_index);
  const Operand& x = context.input(1 - gate_index);
  if (gate.is_constant() || x.is_constant() || context.uses_of(gate_index) != 1) return false;
  const Graph& graph = context.model().graph;
  const Node& node = graph.node(gate.node);
  const Module* module = graph.module_of(node);
  const std::string op = module ? module->op : node.target;
  if (node.kind != NodeKind::call_function && !module) return false;
  const char* name = op == "sigmoid" ? "silu" : op == "hardsigmoid" ? "hardswish" : nullptr;
  if (!name || graph.inputs_of(node.id) != std::vector<NodeId>{x.node}) return false;
  context.result(0, context.call(name, {x}));
  return true;
}

void multiply(NodeContext& context) {
  if (sizes_by_pairs(context, product_of)) return;
  if (multiply_as_gate(context, 0) || multiply_as_gate(context, 1)) return;
  const Operand product = context.call("mul", {context.input(0), context.input(1)});
  context.result(0, wrapped(context, product, context.input(0).element));
}

void divide(NodeContext& context) {
  if (sizes_by_pairs(context, quotient_of)) return;
  const Operand &a = context.input(0), &b = context.input(1);
  if (is_real(a.element)) return context.result(0, context.call("div", {a, b}));
  if (!a.is_constant() || !b.is_constant()) {
    Operand quotient = context.call("trunc", {context.call("div", {a, b})});
    quotient.element = a.element;
    return context.result(0, quotient);
  }
  Operand quotient =
      context.call("div", {context.constant_operand(a.constant->tensor.to(DType::f64)),
                           context.constant_operand(b.constant->tensor.to(DType::f64))});
  Tensor whole = quotient.constant->tensor;
  for (int64_t i = 0; i < whole.numel(); ++i) {
    double& value = whole.mutable_data<double>()[i];
    if (!std::isfinite(value)) context.fail("a whole number is divided by zero");
    value = std::trunc(value);
  }
  context.result(0, context.constant_operand(whole.to(a.constant->tensor.dtype())));
}

void subtract(NodeContext& context) {
  const Operand rest = context.call("sub", {context.input(0), context.input(1)});
  context.result(0, wrapped(context, rest, context.input(0).element));
}

void power(NodeContext& context) {
  Operand result = context.call("pow", {context.input(0), context.input(1)});
  const Element element = context.input(0).element;
  if (!is_real(element) && !result.is_constant()) result = context.call("trunc", {result});
  if (!result.is_constant()) result.element = element;
  context.result(0, result);
}

// What a division leaves: with the divisor's sign, or with the dividend's (fmod).
void modulo(NodeContext& context) {
  if (sizes_by_pairs(context, rest_of)) return;
  const Operand &a = context.input(0), &b = context.input(1);
  const bool with_sign = context.integer("fmod", 0) != 0;
  Operand quotient = context.call("div", {a, b});
  if (a.is_constant() && b.is_constant() && !is_real(a.element)) {
    quotient = context.call("div", {context.constant_operand(a.constant->tensor.to(DType::f64)),
                                    context.constant_operand(b.constant->tensor.to(DType::f64))});
    for (int64_t i = 0; i < quotient.constant->tensor.numel(); ++i)
      if (!std::isfinite(quotient.constant->tensor.item(i)))
        context.fail("a whole number is divided by zero");
  }
  const Operand turns = context.call(with_sign ? "trunc" : "floor", {quotient});
  Operand rest = context.call("sub", {a, context.call("mul", {turns, b})});
  if (rest.is_constant()) rest = context.like(a, rest.constant->tensor.to(*dtype_of(a.element)));
  rest.element = a.element;
  context.result(0, rest);
}

// Any number of operands.
Operand chain(NodeContext& context, const char* op) {
  Operand result = context.input(0);
  for (size_t i = 1; i < context.input_count(); ++i)
    result = context.call(op, {result, context.input(i)});
  if (!result.is_constant()) result.element = context.input(0).element;
  return result;
}

// Whether the order of two sizes is one that the comparison asks for.
std::optional<Size> compared(const char* op, const Size& a, const Size& b) {
  const auto order = order_of(a, b);
  const std::string name = op;
  if (!order) {  // 2 * batch + 1 may be above or below 4, but it is not 4
    const int64_t batches = a.batches - b.batches, rest = b.constant - a.constant;
    const bool never = batches != 0 && (rest % batches != 0 || rest / batches < 1);
    if (never && name == "eq") return Size(0);
    if (never && name == "ne") return Size(1);
    return {};
  }
  const bool holds = name == "eq"   ? *order == 0
                     : name == "ne" ? *order != 0
                     : name == "lt" ? *order < 0
                     : name == "le" ? *order <= 0
                     : name == "gt" ? *order > 0
                                    : *order >= 0;
  return Size(holds);
}

void compare(NodeContext& context, const char* op) {
  const auto rule = [&](const Size& a, const Size& b) { return compared(op, a, b); };
  if (sizes_by_pairs(context, rule, Element::boolean)) return;
  Operand result = context.call(op, {context.input(0), context.input(1)});
  if (result.is_constant()) {
    result = context.constant_operand(result.constant->tensor.to(DType::boolean));
  }
  result.element = Element::boolean;
  context.result(0, result);
}

void truth(NodeContext& context, const char* op) {
  Operand result = context.call(op, {context.input(0), context.input(1)});
  result.element = Element::boolean;
  context.result(0, result);
}

constexpr auto broadcasting = OnnxOperator::Repeated::broadcasting;

const Register<OnnxOperator> add_operator{{.name = "Add",
                                           .summary = "add, or the bias of the layer before it",
                                           .linear = OnnxOperator::Linear::all,
                                           .repeated = broadcasting,
                                           .convert = add}};
const Register<OnnxOperator> sub_operator{{.name = "Sub",
                                           .summary = "sub",
                                           .linear = OnnxOperator::Linear::all,
                                           .repeated = broadcasting,
                                           .convert = subtract}};
const Register<OnnxOperator> mul_operator{{.name = "Mul",
                                           .summary = "mul, or SiLU or Hardswish with a gate",
                                           .repeated = broadcasting,
                                           .convert = multiply}};
const Register<OnnxOperator> div_operator{
    {.name = "Div", .summary = "div", .repeated = broadcasting, .convert = divide}};
const Register<OnnxOperator> pow_operator{
    {.name = "Pow", .summary = "pow", .repeated = broadcasting, .convert = power}};
const Register<OnnxOperator> mod_operator{
    {.name = "Mod", .summary = "x less whole multiples of the divisor", .convert = modulo}};
const Register<OnnxOperator> max_operator{{.name = "Max",
                                           .summary = "maximum of all operands",
                                           .repeated = broadcasting,
                                           .convert = [](NodeContext& c) {
                                             if (c.input_count() != 2 ||
                                                 !sizes_by_pairs(c, larger_of))
                                               c.result(0, chain(c, "maximum"));
                                           }}};
const Register<OnnxOperator> min_operator{{.name = "Min",
                                           .summary = "minimum of all operands",
                                           .repeated = broadcasting,
                                           .convert = [](NodeContext& c) {
                                             if (c.input_count() != 2 ||
                                                 !sizes_by_pairs(c, smaller_of))
                                               c.result(0, chain(c, "minimum"));
                                           }}};
const Register<OnnxOperator> sum_operator{
    {.name = "Sum", .summary = "add of all operands", .convert = [](NodeContext& c) {
       c.result(0, chain(c, "add"));
     }}};
const Register<OnnxOperator> mean_operator{
    {.name = "Mean",
     .summary = "add of all operands, divided by their number",
     .convert = [](NodeContext& c) {
       const auto count = static_cast<float>(c.input_count());
       c.result(0, c.call("div", {chain(c, "add"), c.constant_operand(Tensor::scalar(count))}));
     }}};
const Register<OnnxOperator> equal_operator{
    {.name = "Equal", .summary = "eq", .repeated = broadcasting, .convert = [](NodeContext& c) {
       compare(c, "eq");
     }}};
const Register<OnnxOperator> less_operator{
    {.name = "Less", .summary = "lt", .repeated = broadcasting, .convert = [](NodeContext& c) {
       compare(c, "lt");
     }}};
const Register<OnnxOperator> less_or_equal_operator{
    {.name = "LessOrEqual",
     .summary = "le",
     .repeated = broadcasting,
     .convert = [](NodeContext& c) { compare(c, "le"); }}};
const Register<OnnxOperator> greater_operator{
    {.name = "Greater", .summary = "gt", .repeated = broadcasting, .convert = [](NodeContext& c) {
       compare(c, "gt");
     }}};
const Register<OnnxOperator> greater_or_equal_operator{
    {.name = "GreaterOrEqual",
     .summary = "ge",
     .repeated = broadcasting,
     .convert = [](NodeContext& c) { compare(c, "ge"); }}};
const Register<OnnxOperator> and_operator{
    {.name = "And", .summary = "mul", .repeated = broadcasting, .convert = [](NodeContext& c) {
       truth(c, "mul");
     }}};
const Register<OnnxOperator> or_operator{
    {.name = "Or", .summary = "maximum", .repeated = broadcasting, .convert = [](NodeContext& c) {
       truth(c, "maximum");
     }}};
const Register<OnnxOperator> xor_operator{
    {.name = "Xor", .summary = "ne", .convert = [](NodeContext& c) { compare(c, "ne"); }}};
const Register<OnnxOperator> not_operator{
    {.name = "Not", .summary = "1 - x", .repeated = broadcasting, .convert = [](NodeContext& c) {
       Operand result = c.call("sub", {c.constant_operand(Tensor::scalar(1)), c.input(0)});
       if (result.is_constant())
         result = c.constant_operand(result.constant->tensor.to(DType::boolean));
       result.element = Element::boolean;
       c.result(0, result);
     }}};
const Register<OnnxOperator> where_operator{
    {.name = "Where",
     .summary = "where",
     .linear = OnnxOperator::Linear::but_first,
     .repeated = broadcasting,
     .convert = [](NodeContext& c) {
       Operand result = c.call("where", {c.input(0), c.input(1), c.input(2)});
       if (!result.is_constant()) result.element = c.input(1).element;
       c.result(0, result);
     }}};

}  // namespace
}  // namespace mase::onnx::arithmetic_operators
