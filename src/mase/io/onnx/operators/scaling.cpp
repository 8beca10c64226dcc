// SPDX-License-Identifier: Apache-2.0
// Normalisations without parameters, which are no layers of ours: by neighbouring channels, by a
// norm, by mean and variance.
#include <cmath>

#include "mase/io/onnx/read/operator.h"

namespace mase::onnx::scaling_operators {
namespace {

// x / (bias + alpha / size * sum of squares of `size` channels around each) ^ beta
void local_response(NodeContext& context) {
  const Operand& x = context.input(0);
  if (x.rank() < 2) context.fail("its input has no channels");
  const int64_t size = context.integer("size", 0), channels = x.shape[1];
  constexpr int64_t most = 256;
  if (size < 1 || size > most) context.fail(fmt::format("windows of {} channels", size));
  const int64_t before = (size - 1) / 2, after = size - 1 - before;
  List pads;
  for (size_t i = 2; i < x.rank(); ++i) {
    pads.emplace_back(0);
    pads.emplace_back(0);
  }
  pads.emplace_back(before);
  pads.emplace_back(after);
  const Operand squares =
      context.call("pad", {context.call("square", {x})}, Dict{{"pad", pads}, {"value", 0.0}});
  std::optional<Operand> sum;
  for (int64_t i = 0; i < size; ++i) {
    const Operand shifted =
        size == 1 ? squares
                  : context.call("narrow", {squares},
                                 Dict{{"dim", 1}, {"start", i}, {"length", channels}});
    sum = sum ? context.call("add", {*sum, shifted}) : shifted;
  }
  const double alpha = context.number("alpha", static_cast<double>(1e-4f));
  const Operand scaled =
      context.call("mul", {*sum, context.scalar(alpha / static_cast<double>(size))});
  const Operand base = context.call("add", {scaled, context.scalar(context.number("bias", 1))});
  const Operand power = context.call("pow", {base, context.scalar(context.number("beta", 0.75))});
  context.result(0, context.call("div", {x, power}));
}

Dict over(const std::vector<int64_t>& axes) {
  return Dict{{"dim", Value::of(axes)}, {"keepdim", true}};
}

// The norm over some axes: the sum of magnitudes, or the root of the sum of squares.
Operand norm(NodeContext& context, const Operand& x, const std::vector<int64_t>& axes) {
  const int64_t p = context.integer("p", 2);
  if (p == 1) return context.call("sum", {context.call("abs", {x})}, over(axes));
  if (p != 2) context.fail(fmt::format("the norm of p = {}: 1 and 2 are read", p));
  return context.call("sqrt", {context.call("sum", {context.call("square", {x})}, over(axes))});
}

void by_norm(NodeContext& context) {
  const Operand& x = context.input(0);
  const int64_t axis = context.checked_axis(context.integer("axis", -1), x.rank());
  const Operand length = norm(context, x, {axis});
  // Nothing but zeros stays so.
  const Operand none = context.call("eq", {length, context.scalar(0)});
  context.result(0, context.call("div", {x, context.call("add", {length, none})}));
}

void global_norm(NodeContext& context) {
  const Operand& x = context.input(0);
  std::vector<int64_t> axes;
  for (size_t i = 2; i < x.rank(); ++i) axes.push_back(static_cast<int64_t>(i));
  if (axes.empty()) context.fail("its input has no positions");
  context.result(0, norm(context, x, axes));
}

// (x - mean) / (deviation + 1e-9)
void by_mean_and_variance(NodeContext& context) {
  const Operand& x = context.input(0);
  std::vector<int64_t> axes = context.integer_list("axes", {0, 2, 3});
  for (int64_t& axis : axes) axis = context.checked_axis(axis, x.rank());
  const Operand centred = context.call("sub", {x, context.call("mean", {x}, over(axes))});
  const Operand variance = context.call("mean", {context.call("square", {centred})}, over(axes));
  const Operand deviation =
      context.call("add", {context.call("sqrt", {variance}), context.scalar(1e-9)});
  context.result(0, context.call("div", {centred, deviation}));
}

const Register<OnnxOperator> operators[] = {
    Register<OnnxOperator>({.name = "LRN",
                            .summary = "the squares of neighbouring channels, pow and div",
                            .convert = local_response}),
    Register<OnnxOperator>(
        {.name = "LpNormalization", .summary = "div by a norm", .convert = by_norm}),
    Register<OnnxOperator>({.name = "GlobalLpPool", .summary = "a norm", .convert = global_norm}),
    Register<OnnxOperator>({.name = "MeanVarianceNormalization",
                            .summary = "sub and div by mean and deviation",
                            .convert = by_mean_and_variance}),
};

}  // namespace
}  // namespace mase::onnx::scaling_operators
