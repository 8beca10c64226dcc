// SPDX-License-Identifier: Apache-2.0
// Products of integers. Operands are whole numbers less their zero points, so that sums are exact
// as long as single precision holds them; weights keep the width of their integers as a number
// format, and what QLinear operators round to is one too:
//
//   QLinearConv(x, w, y_scale)   =>   Conv2d of whole numbers, times x_scale w_scale / y_scale,
//   rounded
#include <algorithm>
#include <cmath>

#include "mase/io/onnx/read/dynamic_quantize.h"
#include "mase/io/onnx/read/products.h"
#include "mase/io/onnx/read/quantize_nodes.h"
#include "mase/io/onnx/write/standard_node.h"

namespace mase::onnx::qlinear_operators {
namespace {

// The integers of a result whose scale is input y: numbers in its steps, rounded. `zero_first`: the
// zero point is added before rounding, as some executors do; that decides ties.
Operand codes_of(NodeContext& context, const Operand& steps, size_t y, bool zero_first) {
  const bool has_zero = context.has(y + 1);
  const Element element = context.input(has_zero ? y + 1 : 0).element;
  const auto range = integer_range(element);
  if (!range) context.fail(fmt::format("quantised to {}", element_name(element)));
  const std::vector<double> zeros =
      has_zero ? context.numbers(y + 1, "the zero point") : std::vector<double>{0};
  if (zeros.size() != 1) context.fail("its result has several zero points");
  Codes codes{.node = steps.node, .lowest = range->lowest, .largest = range->largest};
  if (steps.is_constant()) codes.constant = steps.constant;
  codes.format.zeros = zeros;
  codes.format.zero_first = zero_first;
  Operand result{.shape = steps.shape, .element = element};
  result.codes = std::make_shared<const Codes>(std::move(codes));
  return result;
}

Tensor scales_at(NodeContext& context, size_t index) {
  const Tensor scales = context.constant(index, "a scale").to(DType::f32);
  if (scales.numel() < 1) context.fail("an operand has no scale");
  for (int64_t i = 0; i < scales.numel(); ++i)
    if (!(scales.item(i) > 0) || !std::isfinite(scales.item(i)))
      context.fail(fmt::format("a scale of {}", scales.item(i)), "scales are positive numbers");
  return scales;
}

// x_scale w_scale / y_scale, as executors compute it, and rounding to the result's integers.
// `alpha`: a further factor.
Operand requantized(NodeContext& context, const Operand& sums, size_t a, size_t b, size_t y,
                    const Shape& a_shape, const Shape& b_shape, float alpha = 1) {
  const Tensor sa = scales_at(context, a), sb = scales_at(context, b), sy = scales_at(context, y);
  if (sy.numel() != 1) context.fail("its result has several scales");
  const auto factor = [&](int64_t i, int64_t k) {
    return static_cast<double>(alpha * sa.data<float>()[i] * sb.data<float>()[k] /
                               sy.data<float>()[0]);
  };
  Operand scaled;
  if (sa.numel() == 1 && sb.numel() == 1) {
    scaled = context.call("mul", {sums, context.scalar(factor(0, 0))});
  } else {
    const bool rows = sa.numel() > 1, columns = sb.numel() > 1;
    const Shape shape = rows && columns ? Shape{sa.numel(), sb.numel()} : rows ? a_shape : b_shape;
    constexpr int64_t most = int64_t{1} << 24;
    if (sa.numel() > most / sb.numel() || element_count(shape) != sa.numel() * sb.numel())
      context.fail(fmt::format("{} and {} scales", sa.numel(), sb.numel()));
    std::vector<float> factors;
    for (int64_t i = 0; i < sa.numel(); ++i)
      for (int64_t k = 0; k < sb.numel(); ++k) factors.push_back(static_cast<float>(factor(i, k)));
    scaled = context.call("mul", {sums, context.constant_operand(Tensor::of(shape, factors))});
  }
  return codes_of(context, scaled, y, false);
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

// alpha a b + c, where c counts in steps of alpha a_scale b_scale; real numbers without y_scale.
void qgemm(NodeContext& context) {
  const Operand &a = context.input(0), &b = context.input(3);
  const bool turn_a = context.integer("transA", 0) != 0, turn_b = context.integer("transB", 0) != 0;
  if (a.rank() != 2 || b.rank() != 2) context.fail("it multiplies matrices only");
  const int64_t columns = b.shape[turn_b ? 0 : 1];
  note_exactness(context, b.shape[turn_b ? 1 : 0], a.element, b.element);
  const auto turn = [&](const Operand& x) {
    return x.is_constant() ? turned_weight(context, x)
                           : context.call("transpose", {x}, Dict{{"dim0", 0}, {"dim1", 1}});
  };
  Operand left = centred(context, a, 2, -2), right = centred(context, b, 5, turn_b ? 0 : -1);
  if (turn_a) left = turn(left);
  std::optional<Operand> added;
  if (context.has(6)) {
    added = context.as_numbers(context.input(6));
    if (added->is_constant())
      added = context.constant_operand(added->constant->tensor.to(DType::f32));
  }
  const bool plain = !left.is_constant() && right.is_constant() &&
                     (!added || (added->is_constant() && element_count(added->shape) == columns));
  Operand sums;
  if (plain) {
    if (added) added = context.reshape(*added, {columns});
    sums = linear(context, left, turn_b ? right : turned_weight(context, right),
                  added ? &*added : nullptr);
  } else {
    sums = context.call("matmul", {left, turn_b ? turn(right) : right});
    if (added) sums = context.call("add", {sums, *added});
  }
  const auto alpha = static_cast<float>(context.number("alpha", 1));
  if (context.has(7))
    return context.result(0, requantized(context, sums, 1, 4, 7, {}, {columns}, alpha));
  const Operand scale = context.call("mul", {context.input(1), context.input(4)});
  context.result(0,
                 context.call("mul", {sums, context.call("mul", {scale, context.scalar(alpha)})}));
}

float scale_at(NodeContext& context, size_t index) {
  const Tensor scales = scales_at(context, index);
  if (scales.numel() != 1) context.fail("an operand has several scales");
  return scales.data<float>()[0];
}

void qlinear_mul(NodeContext& context) {
  const float factor = scale_at(context, 1) * scale_at(context, 4) / scale_at(context, 6);
  const Operand products = context.call(
      "mul", {centred(context, context.input(0), 2, 1), centred(context, context.input(3), 5, 1)});
  const Operand steps =
      context.call("mul", {products, context.scalar(static_cast<double>(factor))});
  context.result(0, codes_of(context, steps, 6, true));
}

void qlinear_global_average_pool(NodeContext& context) {
  if (context.integer("channels_last", 0) != 0) context.fail("its channels stand last");
  const float factor = scale_at(context, 1) / scale_at(context, 3);
  const Operand mean =
      standard_node(context, "GlobalAveragePool", {centred(context, context.input(0), 2, 1)}, {});
  const Operand steps = context.call("mul", {mean, context.scalar(static_cast<double>(factor))});
  context.result(0, codes_of(context, steps, 3, false));
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

void dynamic_quantize(NodeContext& context) {
  const Dynamic quantised = dynamically_quantized(context, context.input(0));
  context.result(0, quantised.codes);
  context.result(1, quantised.scale);
  context.result(2, quantised.zero);
}

// Sums of whole numbers times a_scale b_scale, and a bias. `at`: which inputs hold what.
struct IntegerProduct {
  size_t b_scale, b_zero, bias;
};
void put_product(NodeContext& context, const Operand& a, const Operand& a_scale,
                 const IntegerProduct& at) {
  Operand weight = context.input(at.b_scale);
  if (weight.rank() == 1 && weight.shape[0] == 1) weight = context.reshape(weight, {});
  const Operand sums = product(context, a, centred(context, context.input(1), at.b_zero, -1));
  Operand result = context.call("mul", {sums, context.call("mul", {a_scale, weight})});
  if (context.has(at.bias)) result = context.call("add", {result, context.input(at.bias)});
  context.result(0, result);
}

void matmul_integer_to_float(NodeContext& context) {
  const Operand &a = context.input(0), &b = context.input(1);
  if (a.rank() < 1 || b.rank() < 1) context.fail("a single number is no matrix");
  note_exactness(context, a.shape.back(), a.element, b.element);
  put_product(context, centred(context, a, 4, -2), context.input(2),
              {.b_scale = 3, .b_zero = 5, .bias = 6});
}

void dynamic_quantize_matmul(NodeContext& context) {
  const Operand &a = context.input(0), &b = context.input(1);
  if (a.rank() < 1 || b.rank() < 1) context.fail("a single number is no matrix");
  note_exactness(context, a.shape.back(), Element::u8, b.element);
  const Dynamic quantised = dynamically_quantized(context, a);
  put_product(context, context.call("sub", {quantised.codes, quantised.zero}), quantised.scale,
              {.b_scale = 2, .b_zero = 3, .bias = 4});
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
    Register<OnnxOperator>({.name = "com.microsoft::QLinearMul",
                            .summary = "mul of whole numbers, and a rounding",
                            .convert = qlinear_mul}),
    Register<OnnxOperator>(
        {.name = "com.microsoft::QLinearGlobalAveragePool",
         .summary = "AdaptiveAvgPool1d or AdaptiveAvgPool2d of whole numbers, and a rounding",
         .convert = qlinear_global_average_pool}),
    Register<OnnxOperator>({.name = "com.microsoft::QGemm",
                            .summary = "Linear or matmul of whole numbers, and a rounding",
                            .convert = qgemm}),
    Register<OnnxOperator>({.name = "com.microsoft::MatMulIntegerToFloat",
                            .summary = "Linear or matmul of whole numbers, and a factor",
                            .convert = matmul_integer_to_float}),
    Register<OnnxOperator>(
        {.name = "com.microsoft::DynamicQuantizeMatMul",
         .summary = "a rounding whose scale follows from the values, and Linear or matmul",
         .convert = dynamic_quantize_matmul}),
    Register<OnnxOperator>({.name = "DynamicQuantizeLinear",
                            .summary = "a rounding whose scale follows from the values",
                            .convert = dynamic_quantize}),
};

}  // namespace
}  // namespace mase::onnx::qlinear_operators
