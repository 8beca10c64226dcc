// SPDX-License-Identifier: Apache-2.0
#include "mase/ops/elementwise.h"

#include <algorithm>

#include "mase/base/broadcast.h"
#include "mase/base/fields.h"
#include "mase/ops/call.h"

namespace mase {
namespace {

Shape infer(const std::vector<Shape>& inputs) {
  Shape shape = inputs.at(0);
  for (size_t i = 1; i < inputs.size(); ++i) shape = broadcast(shape, inputs[i]);
  element_count(shape);  // refuses what overflows
  return shape;
}

// Values of `expr` over the broadcast operands.
Array sweep(const Expr& expr, const std::vector<const Array*>& operands, const Shape& shape) {
  Array out(shape);
  std::vector<std::vector<size_t>> places;
  for (const Array* operand : operands) places.push_back(broadcast_places(operand->shape, shape));
  std::vector<double> values(operands.size());
  for (size_t i = 0; i < out.data.size(); ++i) {
    for (size_t k = 0; k < operands.size(); ++k) values[k] = operands[k]->data[places[k][i]];
    out.data[i] = expr.evaluate(values);
  }
  return out;
}

void complete(OpRecord& record, ExprOf expr) {
  record.infer = [](const Value&, const std::vector<Shape>& inputs) { return infer(inputs); };
  record.eval = [expr](const OpCall& call) {
    return sweep(expr(call.attributes), call.inputs, infer(shapes_of(call)));
  };
  record.grad = [expr](const OpCall& call, const Array& out, const Array& grad_out) {
    OpGradients gradients;
    const Expr value = expr(call.attributes);
    for (size_t k = 0; k < call.inputs.size(); ++k) {
      Array slope = sweep(value.derivative(static_cast<int>(k)), call.inputs, out.shape);
      for (size_t i = 0; i < slope.data.size(); ++i) slope.data[i] *= grad_out.data[i];
      gradients.inputs.push_back(sum_to_shape(slope, call.inputs[k]->shape));
    }
    return gradients;
  };
  record.cost = [](const Value&, const std::vector<Shape>&, const Shape& out) {
    return OpCost{0, element_count(out)};
  };
  record.lower = [expr](Lowering& lowering, const Value& attributes,
                        const std::vector<Slot>& inputs) {
    return lowering.map(expr(attributes), inputs);
  };
}

}  // namespace

Shape broadcast(const Shape& a, const Shape& b) {
  std::optional<Shape> shape = broadcast_shape(a, b);
  if (!shape)
    throw Error("",
                fmt::format("shapes {} and {} do not fit together", shape_text(a), shape_text(b)),
                "sizes must agree from the right, or be 1");
  return *std::move(shape);
}

Array sum_to_shape(const Array& array, const Shape& shape) {
  if (array.shape == shape) return array;
  Array out(shape);
  const std::vector<size_t> places = broadcast_places(shape, array.shape);
  for (size_t i = 0; i < array.data.size(); ++i) out.data[places[i]] += array.data[i];
  return out;
}

OpRecord elementwise(OpRecord record, ExprOf expr) {
  complete(record, std::move(expr));
  return record;
}

OpRecord elementwise_pair(OpRecord record, const std::function<Expr(Expr, Expr)>& expr) {
  record.min_inputs = 1;
  record.max_inputs = 2;
  record.attributes.fields.push_back(
      number_field("other", "the second operand, if it is a number"));
  record.attributes.fields.push_back(number_field("input", "the first operand, if it is a number"));
  record.scalars = {{"other"}, {"input"}};
  if (record.operands.empty()) record.operands = {"data_in", "data_out"};
  complete(record, [expr](const Value& attributes) {
    const Expr first = Expr::operand(0);
    if (!attributes["other"].is_null()) return expr(first, attributes["other"].as_double());
    if (!attributes["input"].is_null()) return expr(attributes["input"].as_double(), first);
    return expr(first, Expr::operand(1));
  });
  const std::string name = record.name;
  record.infer = [name](const Value& attributes, const std::vector<Shape>& inputs) {
    const int numbers = !attributes["other"].is_null() + !attributes["input"].is_null();
    if (static_cast<int>(inputs.size()) + numbers != 2)
      throw Error("",
                  fmt::format("'{}' takes two operands, got {}", name,
                              static_cast<int>(inputs.size()) + numbers),
                  "give two inputs, or one input and 'other'");
    return infer(inputs);
  };
  return record;
}

OpRecord activation(OpRecord record, ExprOf expr) {
  record.element = ElementRule::real;
  record.mase_type = "module_related_func";
  if (record.operands.empty()) record.operands = {"data_in", "data_out"};
  if (record.required_operands.empty()) record.required_operands = {"data_in"};
  return elementwise(std::move(record), std::move(expr));
}

Field inplace_field() {
  return boolean_field("inplace", "kept for PyTorch's printed form; the engine plans memory itself",
                       false);
}

std::string inplace_repr(const Value& attributes) {
  return attributes["inplace"].as_bool() ? "inplace=True" : "";
}

}  // namespace mase
