// SPDX-License-Identifier: Apache-2.0
// Operators that make constants.
#include <cmath>

#include "mase/io/onnx/read/operator.h"
#include "mase/io/onnx/read/tensor_moves.h"

namespace mase::onnx::constant_operators {
namespace {

constexpr int64_t most_elements = int64_t{1} << 24;

Operand read_attribute_tensor(NodeContext& context, const TensorData& data) {
  ExternalFiles nowhere("");
  const Constant constant = read_constant(data, nowhere, *context.model().budget, context.place());
  Operand operand = context.constant_operand(constant.tensor);
  operand.element = constant.element;
  operand.constant->element = constant.element;
  return operand;
}

void constant(NodeContext& context) {
  using Type = Attribute::Type;
  if (const Attribute* value = context.node().find("value"); value && value->tensor) {
    Operand operand = read_attribute_tensor(context, *value->tensor);
    operand.source = context.node().outputs.empty() ? "" : context.node().outputs.front();
    return context.result(0, operand);
  }
  for (const Attribute& attribute : context.node().attributes) {
    if (attribute.type == Type::number)
      return context.result(0, context.constant_operand(Tensor::scalar(attribute.number)));
    if (attribute.type == Type::integer)
      return context.result(0, context.constant_operand(Tensor::of<int64_t>(
                                   {}, std::span<const int64_t>(&attribute.integer, 1))));
    if (attribute.type == Type::numbers)
      return context.result(
          0, context.constant_operand(
                 Tensor::of({static_cast<int64_t>(attribute.numbers.size())}, attribute.numbers)));
    if (attribute.type == Type::integers)
      return context.result(0, context.constant_operand(Tensor::of<int64_t>(
                                   {static_cast<int64_t>(attribute.integers.size())},
                                   std::span<const int64_t>(attribute.integers))));
  }
  context.fail("the constant has no value that is read");
}

void constant_of_shape(NodeContext& context) {
  std::optional<size_t> repeated;
  Shape shape;
  for (const Size& size : context.sizes(0, "the shape")) {
    if (size.is_batch() && !repeated) {  // one entry for all of them
      repeated = shape.size();
      shape.push_back(1);
      continue;
    }
    if (size.has_batch()) context.needs_batch("a constant is made as large as several batches");
    if (size.constant < 0) context.fail(fmt::format("a size of {}", size.constant));
    shape.push_back(size);
  }
  if (element_count(shape) > most_elements)
    context.fail(fmt::format("a constant of shape {} would be made", shape_text(shape)));
  Operand value = context.constant_operand(Tensor::scalar(0));
  if (const Attribute* given = context.node().find("value"); given && given->tensor)
    value = read_attribute_tensor(context, *given->tensor);
  if (value.constant->tensor.numel() != 1) context.fail("the value is no single number");
  context.model().budget->charge(
      static_cast<size_t>(element_count(shape)) * dtype_size(value.constant->tensor.dtype()),
      context.place());
  Operand result = context.constant_operand(expanded(value.constant->tensor.reshaped({}), shape));
  result.element = value.element;
  result.repeated = repeated;
  context.result(0, result);
}

void range(NodeContext& context) {
  const double start = context.single(0, "the start");
  const double limit = context.single(1, "the limit");
  const double step = context.single(2, "the step");
  if (step == 0 || !std::isfinite(start) || !std::isfinite(limit) || !std::isfinite(step))
    context.fail("a range without end");
  const double count = std::max(0.0, std::ceil((limit - start) / step));
  if (count > static_cast<double>(most_elements)) context.fail("a range of too many numbers");
  Tensor numbers({static_cast<int64_t>(count)}, DType::f64);
  for (int64_t i = 0; i < numbers.numel(); ++i)
    numbers.mutable_data<double>()[i] = start + static_cast<double>(i) * step;
  context.result(0,
                 context.constant_operand(numbers.to(context.input(0).constant->tensor.dtype())));
}

const Register<OnnxOperator> constant_operator{
    {.name = "Constant", .summary = "a constant", .convert = constant}};
const Register<OnnxOperator> constant_of_shape_operator{
    {.name = "ConstantOfShape", .summary = "a constant", .convert = constant_of_shape}};
const Register<OnnxOperator> range_operator{
    {.name = "Range", .summary = "a constant", .convert = range}};

}  // namespace
}  // namespace mase::onnx::constant_operators
