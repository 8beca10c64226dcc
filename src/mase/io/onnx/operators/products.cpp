// SPDX-License-Identifier: Apache-2.0
// Matrix products and convolutions. With a constant weight they are layers, as PyTorch has them:
// Linear, Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d.
#include "mase/io/onnx/read/products.h"

namespace mase::onnx::product_operators {
namespace {

Operand scaled(NodeContext& context, const Operand& x, double factor) {
  if (factor == 1) return x;
  Operand result = context.call("mul", {x, context.scalar(factor)});
  result.source = x.source;
  return result;
}

void gemm(NodeContext& context) {
  const Operand &a = context.input(0), &b = context.input(1);
  if (a.rank() != 2 || b.rank() != 2)
    context.fail(fmt::format("it multiplies matrices only, not {} and {}", shape_text(a.shape),
                             shape_text(b.shape)));
  const double alpha = context.number("alpha", 1), beta = context.number("beta", 1);
  const bool turn_a = context.integer("transA", 0) != 0, turn_b = context.integer("transB", 0) != 0;
  const bool has_c = context.has(2) && beta != 0;
  const bool plain_bias = has_c && context.input(2).is_constant() && b.rank() == 2 &&
                          context.input(2).constant->tensor.numel() == b.shape[turn_b ? 0 : 1] &&
                          (context.input(2).rank() < 2 || context.input(2).shape[0] == 1);
  if (!a.is_constant() && b.is_constant() && b.rank() == 2 && !turn_a && a.rank() == 2 &&
      (!has_c || plain_bias)) {
    const Operand weight = scaled(context, turn_b ? b : turned_weight(context, b), alpha);
    if (!has_c) return context.result(0, linear(context, a, weight, nullptr));
    Operand bias = scaled(context, context.input(2), beta);
    if (bias.format && bias.format->axis) {
      bias.format->axis = 0;
      if (bias.format->affine) bias.format->affine->axis = 0;
    }
    return context.result(0, linear(context, a, weight, &bias));
  }
  const auto turn = [&](const Operand& x, bool wanted) {
    return wanted ? context.call("transpose", {x}, Dict{{"dim0", 0}, {"dim1", 1}}) : x;
  };
  Operand result =
      scaled(context, context.call("matmul", {turn(a, turn_a), turn(b, turn_b)}), alpha);
  if (has_c) result = context.call("add", {result, scaled(context, context.input(2), beta)});
  context.result(0, result);
}

void convolve(NodeContext& context, bool transposed) {
  std::optional<Operand> bias;
  if (context.has(2)) bias = context.input(2);
  context.result(0, convolution(context, context.input(0), context.input(1), bias, transposed));
}

const Register<OnnxOperator> matmul_operator{
    {.name = "MatMul",
     .summary = "Linear with a constant matrix, else matmul",
     .convert = [](NodeContext& context) {
       context.result(0, product(context, context.input(0), context.input(1)));
     }}};
const Register<OnnxOperator> gemm_operator{
    {.name = "Gemm",
     .summary = "Linear with a constant matrix, else matmul and add",
     .convert = gemm}};
const Register<OnnxOperator> conv_operator{
    {.name = "Conv", .summary = "Conv1d or Conv2d", .convert = [](NodeContext& context) {
       convolve(context, false);
     }}};
const Register<OnnxOperator> conv_transpose_operator{
    {.name = "ConvTranspose",
     .summary = "ConvTranspose1d or ConvTranspose2d",
     .convert = [](NodeContext& context) { convolve(context, true); }}};

}  // namespace
}  // namespace mase::onnx::product_operators
