// SPDX-License-Identifier: Apache-2.0
// Operators that work on each element of one tensor.
#include <cmath>
#include <limits>

#include "mase/io/onnx/read/operator.h"

namespace mase::onnx::activation_operators {
namespace {

OnnxOperator plain(const char* name, const char* op) {
  return {.name = name, .summary = op, .convert = [op](NodeContext& context) {
            context.result(0, context.call(op, {context.input(0)}));
          }};
}

// A layer that takes one number under another name.
OnnxOperator with_number(const char* name, const char* op, const char* attribute, double fallback,
                         const char* own) {
  return {.name = name, .summary = op, .convert = [=](NodeContext& context) {
            context.result(0, context.call(op, {context.input(0)},
                                           Dict{{own, context.number(attribute, fallback)}}));
          }};
}

void hard_sigmoid(NodeContext& context) {
  const double alpha = context.number("alpha", 0.2f), beta = context.number("beta", 0.5);
  constexpr double sixth = static_cast<double>(1.0f / 6.0f);
  if (std::fabs(alpha - sixth) < 1e-7 && beta == 0.5)
    return context.result(0, context.call("hardsigmoid", {context.input(0)}));
  const Operand line = context.call(
      "add",
      {context.call("mul", {context.input(0), context.scalar(alpha)}), context.scalar(beta)});
  context.result(0, context.call("clamp", {line}, Dict{{"min", 0.0}, {"max", 1.0}}));
}

// max(0, x) + min(0, a (exp(x / a) - 1))
void celu(NodeContext& context) {
  const double alpha = context.number("alpha", 1);
  const Operand& x = context.input(0);
  const Operand power = context.call("exp", {context.call("div", {x, context.scalar(alpha)})});
  const Operand below =
      context.call("mul", {context.call("sub", {power, context.scalar(1)}), context.scalar(alpha)});
  context.result(0, context.call("add", {context.call("relu", {x}),
                                         context.call("minimum", {below, context.scalar(0)})}));
}

// x where x > alpha, else 0.
void thresholded_relu(NodeContext& context) {
  const Operand& x = context.input(0);
  const Operand above = context.call("gt", {x, context.scalar(context.number("alpha", 1))});
  context.result(0, context.call("mul", {x, above}));
}

void selu(NodeContext& context) {
  const double alpha = context.number("alpha", 1.6732632423543772),
               gamma = context.number("gamma", 1.0507009873554805);
  if (std::fabs(alpha - 1.6732632423543772) < 1e-6 && std::fabs(gamma - 1.0507009873554805) < 1e-6)
    return context.result(0, context.call("selu", {context.input(0)}));
  context.result(
      0, context.call("mul", {context.call("elu", {context.input(0)}, Dict{{"alpha", alpha}}),
                              context.scalar(gamma)}));
}

std::optional<double> bound(const NodeContext& context, const char* attribute, size_t index) {
  if (context.has_attribute(attribute)) return context.number(attribute, 0);
  if (!context.has(index)) return {};
  const Tensor& tensor = context.constant(index, "the limit of a Clip");
  if (tensor.numel() != 1) context.fail("the limit of a Clip is no single number");
  return tensor.item();
}

void clip(NodeContext& context) {
  const auto low = bound(context, "min", 1), high = bound(context, "max", 2);
  const Operand& x = context.input(0);
  if (x.codes) {  // fewer bits than the integers between the quantisers have
    Codes narrowed = *x.codes;
    if (low) narrowed.lowest = std::max(narrowed.lowest, *low);
    if (high) narrowed.largest = std::min(narrowed.largest, *high);
    Operand result = x;
    result.codes = std::make_shared<const Codes>(std::move(narrowed));
    return context.result(0, result);
  }
  constexpr double float_limit = static_cast<double>(std::numeric_limits<float>::max());
  const bool has_low = low && *low > -float_limit, has_high = high && *high < float_limit;
  if (!has_low && !has_high) return context.result(0, x);
  if (has_low && *low == 0 && has_high && *high == 6)
    return context.result(0, context.call("relu6", {x}));
  if (has_low && *low == 0 && !has_high) return context.result(0, context.call("relu", {x}));
  Dict limits;
  if (has_low) limits.set("min", *low);
  if (has_high) limits.set("max", *high);
  context.result(0, context.call("clamp", {x}, limits));
}

void gelu(NodeContext& context) {
  context.result(0, context.call("gelu", {context.input(0)},
                                 Dict{{"approximate", context.text("approximate", "none")}}));
}

void prelu(NodeContext& context) {
  const Operand& x = context.input(0);
  const Tensor& slope = context.constant(1, "the slope");
  const int64_t channels = x.rank() > 1 ? x.shape[1].number() : 1;
  bool fits = slope.numel() == 1;
  if (!fits && slope.numel() == channels) {
    // [C, 1, ...] from the right, or [C] for a matrix.
    const auto along = per_channel(slope, x.rank());
    fits = along && along->axis == 1;
  }
  if (fits && x.rank() > 1)
    return context.result(0, context.layer("prelu", Dict{{"num_parameters", slope.numel()}},
                                           {{"weight", context.input(1)}}, x));
  const Operand below = context.call("minimum", {x, context.scalar(0)});
  context.result(0, context.call("add", {context.call("relu", {x}),
                                         context.call("mul", {below, context.input(1)})}));
}

void reciprocal(NodeContext& context) {
  context.result(0, context.call("div", {context.scalar(1), context.input(0)}));
}

// x moved towards 0 by `bias`; 0 where it is within `lambd` of it.
void shrink(NodeContext& context) {
  const Operand& x = context.input(0);
  const double limit = context.number("lambd", 0.5), bias = context.number("bias", 0);
  const auto side = [&](const char* compare, double at, double moved) {
    const Operand outside = context.call(compare, {x, context.scalar(at)});
    return context.call(
        "where", {outside, context.call("add", {x, context.scalar(moved)}), context.scalar(0)});
  };
  context.result(0, context.call("add", {side("lt", -limit, bias), side("gt", limit, -bias)}));
}

// (exp(x) + exp(-x)) / 2, or the difference.
void hyperbolic(NodeContext& context, const char* op) {
  const Operand& x = context.input(0);
  const Operand up = context.call("exp", {x}),
                down = context.call("exp", {context.call("neg", {x})});
  context.result(0, context.call("mul", {context.call(op, {up, down}), context.scalar(0.5)}));
}

Operand as_truth(NodeContext& context, Operand x) {
  if (x.is_constant()) x = context.constant_operand(x.constant->tensor.to(DType::boolean));
  x.element = Element::boolean;
  return x;
}

void is_infinite(NodeContext& context) {
  const Operand& x = context.input(0);
  const Operand largest = context.scalar(static_cast<double>(std::numeric_limits<float>::max())),
                lowest = context.scalar(-static_cast<double>(std::numeric_limits<float>::max()));
  const bool above = context.integer("detect_positive", 1) != 0,
             below = context.integer("detect_negative", 1) != 0;
  if (above && below)
    return context.result(
        0, as_truth(context, context.call("gt", {context.call("abs", {x}), largest})));
  if (!above && !below)
    return context.result(
        0, as_truth(context, context.call("mul", {context.call("ne", {x, x}), context.scalar(0)})));
  context.result(0, as_truth(context, above ? context.call("gt", {x, largest})
                                            : context.call("lt", {x, lowest})));
}

// x * sigmoid(alpha x)
void swish(NodeContext& context) {
  const Operand& x = context.input(0);
  const double alpha = context.number("alpha", 1);
  if (alpha == 1) return context.result(0, context.call("silu", {x}));
  const Operand gate = context.call("sigmoid", {context.call("mul", {x, context.scalar(alpha)})});
  context.result(0, context.call("mul", {x, gate}));
}

const Register<OnnxOperator> operators[] = {
    Register<OnnxOperator>(plain("Relu", "relu")),
    Register<OnnxOperator>(plain("Sigmoid", "sigmoid")),
    Register<OnnxOperator>(plain("Tanh", "tanh")),
    Register<OnnxOperator>(plain("HardSwish", "hardswish")),
    Register<OnnxOperator>(plain("Softplus", "softplus")),
    Register<OnnxOperator>(plain("Softsign", "softsign")),
    Register<OnnxOperator>(plain("Mish", "mish")),
    Register<OnnxOperator>(plain("Erf", "erf")),
    Register<OnnxOperator>(plain("Exp", "exp")),
    Register<OnnxOperator>(plain("Log", "log")),
    Register<OnnxOperator>(plain("Sqrt", "sqrt")),
    Register<OnnxOperator>(plain("Abs", "abs")),
    Register<OnnxOperator>(plain("Neg", "neg")),
    Register<OnnxOperator>(plain("Sin", "sin")),
    Register<OnnxOperator>(plain("Cos", "cos")),
    Register<OnnxOperator>(plain("Floor", "floor")),
    Register<OnnxOperator>(plain("Ceil", "ceil")),
    Register<OnnxOperator>(plain("Round", "round")),
    Register<OnnxOperator>(plain("Sign", "sign")),
    Register<OnnxOperator>(
        with_number("LeakyRelu", "leaky_relu", "alpha", 0.01f, "negative_slope")),
    Register<OnnxOperator>(with_number("Elu", "elu", "alpha", 1, "alpha")),
    Register<OnnxOperator>({.name = "HardSigmoid",
                            .summary = "hardsigmoid, or clamp of a line",
                            .convert = hard_sigmoid}),
    Register<OnnxOperator>({.name = "Celu", .summary = "relu and exp", .convert = celu}),
    Register<OnnxOperator>(
        {.name = "ThresholdedRelu", .summary = "x * (x > alpha)", .convert = thresholded_relu}),
    Register<OnnxOperator>({.name = "Selu", .summary = "selu", .convert = selu}),
    Register<OnnxOperator>({.name = "Clip", .summary = "clamp, relu or relu6", .convert = clip}),
    Register<OnnxOperator>(
        {.name = "Gelu", .aliases = {"com.microsoft::Gelu"}, .summary = "gelu", .convert = gelu}),
    Register<OnnxOperator>({.name = "PRelu", .summary = "PReLU", .convert = prelu}),
    Register<OnnxOperator>({.name = "Reciprocal", .summary = "1 / x", .convert = reciprocal}),
    Register<OnnxOperator>({.name = "Swish", .summary = "silu", .convert = swish}),
    Register<OnnxOperator>({.name = "Shrink", .summary = "where and add", .convert = shrink}),
    Register<OnnxOperator>({.name = "Sinh",
                            .summary = "exp(x) less exp(-x)",
                            .convert = [](NodeContext& context) { hyperbolic(context, "sub"); }}),
    Register<OnnxOperator>({.name = "Cosh",
                            .summary = "exp(x) and exp(-x)",
                            .convert = [](NodeContext& context) { hyperbolic(context, "add"); }}),
    Register<OnnxOperator>(
        {.name = "Tan",
         .summary = "sin and cos",
         .convert =
             [](NodeContext& context) {
               const Operand& x = context.input(0);
               context.result(
                   0, context.call("div", {context.call("sin", {x}), context.call("cos", {x})}));
             }}),
    Register<OnnxOperator>({.name = "IsNaN",
                            .summary = "ne of x and itself",
                            .convert =
                                [](NodeContext& context) {
                                  const Operand& x = context.input(0);
                                  context.result(0, as_truth(context, context.call("ne", {x, x})));
                                }}),
    Register<OnnxOperator>(
        {.name = "IsInf", .summary = "gt or lt of the largest number", .convert = is_infinite}),
};

}  // namespace
}  // namespace mase::onnx::activation_operators
