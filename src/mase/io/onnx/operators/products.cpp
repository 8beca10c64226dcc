// SPDX-License-Identifier: Apache-2.0
// Matrix products and convolutions. With a constant weight they are layers, as PyTorch has them:
// Linear, Conv1d, Conv2d, ConvTranspose1d, ConvTranspose2d.
#include <algorithm>

#include "mase/io/onnx/operator.h"
#include "mase/io/onnx/tensor_moves.h"
#include "mase/io/onnx/windows.h"

namespace mase::onnx::product_operators {
namespace {

// A weight [in, out] as Linear keeps it, [out, in].
Operand turned(NodeContext& context, const Operand& weight) {
  context.model().budget->charge(weight.constant->tensor.bytes(), context.place());
  Operand result = weight;
  result.constant->tensor = transposed(weight.constant->tensor, {1, 0});
  result.shape = result.constant->tensor.shape();
  if (result.format) result.format = permuted(*result.format, {1, 0}, 2);
  return result;
}

// `weight` [out, in].
Operand linear(NodeContext& context, const Operand& x, const Operand& weight, const Operand* bias) {
  std::vector<NodeContext::Parameter> parameters = {{"weight", weight}};
  if (bias) parameters.push_back({"bias", *bias});
  return context.layer("linear",
                       Dict{{"in_features", weight.shape[1]},
                            {"out_features", weight.shape[0]},
                            {"bias", bias != nullptr}},
                       parameters, x);
}

void matmul(NodeContext& context) {
  const Operand &a = context.input(0), &b = context.input(1);
  if (!a.is_constant() && b.is_constant() && b.rank() == 2 && a.rank() > 1 &&
      element_count(b.shape) > 0)
    return context.result(0, linear(context, a, turned(context, b), nullptr));
  context.result(0, context.call("matmul", {a, b}));
}

Operand scaled(NodeContext& context, const Operand& x, double factor) {
  if (factor == 1) return x;
  Operand result = context.call(
      "mul", {x, context.constant_operand(Tensor::scalar(static_cast<float>(factor)))});
  result.source = x.source;
  return result;
}

void gemm(NodeContext& context) {
  const Operand &a = context.input(0), &b = context.input(1);
  const double alpha = context.number("alpha", 1), beta = context.number("beta", 1);
  const bool turn_a = context.integer("transA", 0) != 0, turn_b = context.integer("transB", 0) != 0;
  const bool has_c = context.has(2) && beta != 0;
  const bool plain_bias = has_c && context.input(2).is_constant() && b.rank() == 2 &&
                          context.input(2).constant->tensor.numel() == b.shape[turn_b ? 0 : 1] &&
                          (context.input(2).rank() < 2 || context.input(2).shape[0] == 1);
  if (!a.is_constant() && b.is_constant() && b.rank() == 2 && !turn_a && a.rank() == 2 &&
      (!has_c || plain_bias)) {
    const Operand weight = scaled(context, turn_b ? b : turned(context, b), alpha);
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

void convolution(NodeContext& context, bool transposed) {
  Operand x = context.input(0);
  const Operand& weight = context.input(1);
  if (x.rank() != 3 && x.rank() != 4)
    context.fail(fmt::format("an input of rank {}: only 3 and 4 are read", x.rank()));
  if (weight.rank() != x.rank())
    context.fail(
        fmt::format("a weight of rank {} for an input of rank {}", weight.rank(), x.rank()));
  const size_t dims = x.rank() - 2;
  const Shape kernel(weight.shape.begin() + 2, weight.shape.end());
  const auto declared = context.integer_list("kernel_shape", kernel);
  if (declared != kernel) context.fail("kernel_shape is not the weight's");
  const WindowAttributes windows = read_windows(context, kernel, transposed);
  const int64_t groups = context.integer("group", 1);
  if (groups < 1) context.fail("group is below 1");
  Dict attributes{{"stride", Value::of(windows.strides)},
                  {"dilation", Value::of(windows.dilations)},
                  {"groups", groups}};
  if (transposed && context.has_attribute("output_shape"))
    context.fail("it says its output's shape instead of its padding",
                 "export the model with pads and output_padding");
  if (transposed) {
    // What is cut off the end more than off the beginning is an output padding less.
    std::vector<int64_t> further =
        context.integer_list("output_padding", std::vector<int64_t>(dims, 0));
    for (size_t i = 0; i < dims; ++i) {
      further.at(i) += windows.before[i] - windows.after[i];
      if (further[i] < 0) context.fail("pads that differ this way cannot be converted");
    }
    attributes.set("output_padding", Value::of(further));
    attributes.set("padding", Value::of(windows.before));
  } else if (windows.before == windows.after) {
    attributes.set("padding", Value::of(windows.before));
  } else {
    x = padded(context, x, windows, 0);
  }
  const bool has_bias = context.has(2);
  const std::string op = fmt::format("conv{}{}d", transposed ? "_transpose" : "", dims);
  if (!weight.is_constant()) {
    std::vector<Operand> inputs = {x, weight};
    if (has_bias) inputs.push_back(context.input(2));
    return context.result(0, context.call(op, inputs, attributes));
  }
  const int64_t in = transposed ? weight.shape[0] : weight.shape[1] * groups;
  const int64_t out = transposed ? weight.shape[1] * groups : weight.shape[0];
  attributes.set("in_channels", in);
  attributes.set("out_channels", out);
  attributes.set("kernel_size", Value::of(kernel));
  attributes.set("bias", has_bias);
  std::vector<NodeContext::Parameter> parameters = {{"weight", weight}};
  if (has_bias) {
    context.constant(2, "the bias");
    parameters.push_back({"bias", context.input(2)});
  }
  context.result(0, context.layer(op, attributes, parameters, x));
}

const Register<OnnxOperator> matmul_operator{
    {.name = "MatMul", .summary = "Linear with a constant matrix, else matmul", .convert = matmul}};
const Register<OnnxOperator> gemm_operator{
    {.name = "Gemm",
     .summary = "Linear with a constant matrix, else matmul and add",
     .convert = gemm}};
const Register<OnnxOperator> conv_operator{
    {.name = "Conv", .summary = "Conv1d or Conv2d", .convert = [](NodeContext& context) {
       convolution(context, false);
     }}};
const Register<OnnxOperator> conv_transpose_operator{
    {.name = "ConvTranspose",
     .summary = "ConvTranspose1d or ConvTranspose2d",
     .convert = [](NodeContext& context) { convolution(context, true); }}};

}  // namespace
}  // namespace mase::onnx::product_operators
