// SPDX-License-Identifier: Apache-2.0
// Products of integers. Operands are whole numbers less their zero points, so that sums are exact
// as long as single precision holds them; weights keep the width of their integers as a number
// format, and what QLinear operators round to is one too:
//
//   QLinearConv(x, w, y_scale)   =>   Conv2d of whole numbers, times x_scale w_scale / y_scale,
//   rounded
#include <algorithm>
#include <cmath>

#include "mase/io/onnx/products.h"
#include "mase/io/onnx/quantize_nodes.h"

namespace mase::onnx::qlinear_operators {
namespace {

// Sums of so many products of 8-bit numbers.
void note_exactness(NodeContext& context, int64_t terms, Element a, Element b) {
  const auto one = integer_range(a), other = integer_range(b);
  if (!one || !other) return;
  const double span =
      (one->largest - one->lowest) * (other->largest - other->lowest) * static_cast<double>(terms);
  if (span >= 0x1p24)
    context.note(
        fmt::format("{}: sums of {} products are exact up to 2^24 only", context.place(), terms));
}

// x_scale w_scale / y_scale, as executors compute it, and rounding to the result's integers.
Operand requantized(NodeContext& context, const Operand& sums, size_t a, size_t b, size_t y,
                    const Shape& a_shape, const Shape& b_shape) {
  const auto tensor = [&](size_t index, const char* what) {
    return context.constant(index, what).to(DType::f32);
  };
  const Tensor sa = tensor(a, "a scale"), sb = tensor(b, "a scale"), sy = tensor(y, "a scale");
  if (sy.numel() != 1) context.fail("its result has several scales");
  if (sa.numel() < 1 || sb.numel() < 1) context.fail("an operand has no scale");
  const auto factor = [&](int64_t i, int64_t k) {
    return static_cast<double>(sa.data<float>()[i] * sb.data<float>()[k] / sy.data<float>()[0]);
  };
  const Element element = context.input(y + 1).element;
  const auto range = integer_range(element);
  if (!range) context.fail(fmt::format("quantised to {}", element_name(element)));
  Operand scaled;
  if (sa.numel() == 1 && sb.numel() == 1) {
    scaled = context.call("mul", {sums, context.scalar(factor(0, 0))});
  } else {
    Shape shape = a_shape;
    const bool rows = sa.numel() > 1, columns = sb.numel() > 1;
    std::vector<float> factors;
    for (int64_t i = 0; i < sa.numel(); ++i)
      for (int64_t k = 0; k < sb.numel(); ++k) factors.push_back(static_cast<float>(factor(i, k)));
    shape = rows && columns ? Shape{sa.numel(), sb.numel()} : rows ? a_shape : b_shape;
    scaled = context.call("mul", {sums, context.constant_operand(Tensor::of(shape, factors))});
  }
  const std::vector<double> zeros = context.numbers(y + 1, "the zero point");
  if (zeros.size() != 1) context.fail("its result has several zero points");
  Codes codes{.node = scaled.node, .lowest = range->lowest, .largest = range->largest};
  if (scaled.is_constant()) codes.constant = scaled.constant;
  codes.format.zeros = zeros;
  codes.format.zero_first = false;
  Operand result{.shape = scaled.shape, .element = element};
  result.codes = std::make_shared<const Codes>(std::move(codes));
  return result;
}

void qlinear_matmul(NodeContext& context) {
  const Operand &a = context.input(0), &b = context.input(3);
  if (a.rank() < 1 || b.rank() < 1) context.fail("a single number is no matrix");
  note_exactness(context, a.shape.back(), a.element, b.element);
  const Operand sums = product(context, centred(context, a, 2, -2), centred(context, b, 5, -1));
  context.result(
      0, requantized(context, sums, 1, 4, 6, Shape{context.constant(1, "a scale").numel(), 1},
                     Shape{context.constant(4, "a scale").numel()}));
}

void matmul_integer(NodeContext& context) {
  const Operand &a = context.input(0), &b = context.input(1);
  if (a.rank() < 1 || b.rank() < 1) context.fail("a single number is no matrix");
  note_exactness(context, a.shape.back(), a.element, b.element);
  Operand result = product(context, centred(context, a, 2, -2), centred(context, b, 3, -1));
  result.element = Element::i32;
  context.result(0, result);
}

int64_t taps(const Operand& weight) {
  int64_t count = 1;
  for (size_t i = 1; i < weight.rank(); ++i) count *= weight.shape[i];
  return count;
}

void qlinear_conv(NodeContext& context) {
  const Operand &x = context.input(0), &w = context.input(3);
  note_exactness(context, taps(w), x.element, w.element);
  std::optional<Operand> bias;
  if (context.has(8))
    bias = context.constant_operand(context.constant(8, "the bias").to(DType::f32));
  const Operand sums =
      convolution(context, centred(context, x, 2, 1), centred(context, w, 5, 0), bias, false);
  Shape channels(sums.rank() > 0 ? sums.rank() - 1 : 0, 1);
  if (!channels.empty()) channels.front() = context.constant(4, "a scale").numel();
  context.result(0, requantized(context, sums, 1, 4, 6, {}, channels));
}

void conv_integer(NodeContext& context) {
  const Operand &x = context.input(0), &w = context.input(1);
  note_exactness(context, taps(w), x.element, w.element);
  Operand result =
      convolution(context, centred(context, x, 2, 1), centred(context, w, 3, 0), {}, false);
  result.element = Element::i32;
  context.result(0, result);
}

// Scale and zero point from the values that are there: 0 and all of them lie in the range.
void dynamic_quantize(NodeContext& context) {
  const Operand& x = context.input(0);
  if (!context.whole() && context.fixed_batch() > 1)
    context.fail("one scale is found for all entries of the batch");
  if (!context.whole() && context.fixed_batch() == 0)
    context.note(
        fmt::format("{}: a scale is found for each entry of the batch, where the file "
                    "finds one for all of it",
                    context.place()));
  Operand low = x, high = x;
  for (size_t i = x.rank(); i-- > (context.whole() ? 0 : 1);) {
    const Dict over{{"dim", static_cast<int64_t>(i)}, {"keepdim", true}};
    low = context.call("min", {low}, over);
    high = context.call("max", {high}, over);
  }
  low = context.call("minimum", {low, context.scalar(0)});
  high = context.call("maximum", {high, context.scalar(0)});
  const Operand span = context.call("sub", {high, low});
  Operand scale = context.call("div", {span, context.scalar(255)});
  scale = context.call("where",
                       {context.call("eq", {scale, context.scalar(0)}),
                        context.constant_operand(Tensor::of(Shape(x.rank(), 1), {1.0f})), scale});
  scale.element = Element::f32;
  const auto whole_code = [&](const Operand& number) {
    return context.rounded(number, affine_format({.width = 24}));
  };
  Operand zero = context.call("clamp", {context.call("neg", {context.call("div", {low, scale})})},
                              Dict{{"min", 0.0}, {"max", 255.0}});
  zero = whole_code(zero);
  Operand codes = context.call("add", {whole_code(context.call("div", {x, scale})), zero});
  codes = context.call("clamp", {codes}, Dict{{"min", 0.0}, {"max", 255.0}});
  codes.element = zero.element = Element::u8;
  context.result(0, codes);
  const auto single = [&](const Operand& number) {
    return context.whole() ? context.reshape(number, {}) : number;
  };
  context.result(1, single(scale));
  context.result(2, single(zero));
}

const Register<OnnxOperator> operators[] = {
    Register<OnnxOperator>({.name = "QLinearMatMul",
                            .summary = "Linear or matmul of whole numbers, and a rounding",
                            .convert = qlinear_matmul}),
    Register<OnnxOperator>({.name = "QLinearConv",
                            .summary = "Conv1d or Conv2d of whole numbers, and a rounding",
                            .convert = qlinear_conv}),
    Register<OnnxOperator>({.name = "MatMulInteger",
                            .summary = "Linear or matmul of whole numbers",
                            .convert = matmul_integer}),
    Register<OnnxOperator>({.name = "ConvInteger",
                            .summary = "Conv1d or Conv2d of whole numbers",
                            .convert = conv_integer}),
    Register<OnnxOperator>({.name = "DynamicQuantizeLinear",
                            .summary = "a rounding whose scale follows from the values",
                            .convert = dynamic_quantize}),
};

}  // namespace
}  // namespace mase::onnx::qlinear_operators
