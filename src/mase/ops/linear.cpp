// SPDX-License-Identifier: Apache-2.0
// Linear: y = x W^T + b over the last dimension, for any rank of x. As a function, W and b are
// inputs.
#include <cmath>

#include "mase/base/fields.h"
#include "mase/ir/op.h"
#include "mase/ops/call.h"

namespace mase::linear_op {
namespace {

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  int64_t in = 0, out = 0;
  if (inputs.size() > 1) {
    const Shape& weight = inputs[1];
    if (weight.size() != 2 || (inputs.size() > 2 && inputs[2] != Shape{weight[0]}))
      throw Error("", fmt::format("linear wants a weight [out, in] and a bias [out], got {}{}",
                                  shape_text(weight),
                                  inputs.size() > 2 ? " and " + shape_text(inputs[2]) : ""));
    in = weight[1];
    out = weight[0];
  } else {
    in = attributes["in_features"].as_int("in_features");
    out = attributes["out_features"].as_int("out_features");
  }
  Shape shape = inputs[0];
  if (shape.empty() || shape.back() != in)
    throw Error("",
                fmt::format("Linear wants {} input features, got shape {}", in, shape_text(shape)),
                shape.empty() ? "" : fmt::format("set in_features to {}", shape.back()));
  shape.back() = out;
  return shape;
}

std::vector<ParamSpec> params(const Value& attributes) {
  for (const char* name : {"in_features", "out_features"})
    if (attributes[name].is_null())
      throw Error(attributes.position(), "", fmt::format("Linear: '{}' is missing", name),
                  "give the number of features");
  const int64_t in = attributes["in_features"].as_int(), out = attributes["out_features"].as_int();
  const double bound = in > 0 ? 1.0 / std::sqrt(static_cast<double>(in)) : 0;
  std::vector<ParamSpec> specs = {{"weight", {out, in}, true, 0, bound}};
  if (attributes["bias"].as_bool()) specs.push_back({"bias", {out}, true, 0, bound});
  return specs;
}

Array eval(const OpCall& call) {
  const Array& x = *call.inputs[0];
  const Array& w = *param_of(call, "weight", 1);
  const Array* bias = param_of(call, "bias", 2);
  Shape shape = x.shape;
  shape.back() = w.shape[0];
  Array y(shape);
  const size_t in = static_cast<size_t>(w.shape[1]), out = static_cast<size_t>(w.shape[0]);
  for (size_t row = 0; row * out < y.data.size(); ++row)
    for (size_t o = 0; o < out; ++o) {
      double sum = bias ? bias->data[o] : 0;
      for (size_t i = 0; i < in; ++i) sum += x.data[row * in + i] * w.data[o * in + i];
      y.data[row * out + o] = sum;
    }
  return y;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  const Array& x = *call.inputs[0];
  const Array& w = *param_of(call, "weight", 1);
  const size_t in = static_cast<size_t>(w.shape[1]), out = static_cast<size_t>(w.shape[0]);
  Array gx(x.shape), gw(w.shape), gb({w.shape[0]});
  for (size_t row = 0; row * out < g.data.size(); ++row)
    for (size_t o = 0; o < out; ++o) {
      const double d = g.data[row * out + o];
      gb.data[o] += d;
      for (size_t i = 0; i < in; ++i) {
        gx.data[row * in + i] += d * w.data[o * in + i];
        gw.data[o * in + i] += d * x.data[row * in + i];
      }
    }
  return layer_gradients(call, std::move(gx), std::move(gw), std::move(gb));
}

OpCost cost(const Value&, const std::vector<Shape>& inputs, const Shape& out) {
  const int64_t macs = element_count(inputs[0]) * out.back();
  return {macs, 2 * macs};
}

std::string repr(const Value& attributes) {
  return fmt::format("in_features={}, out_features={}, bias={}", attributes["in_features"].as_int(),
                     attributes["out_features"].as_int(),
                     attributes["bias"].as_bool() ? "True" : "False");
}

Slot lower(Lowering& lowering, const Value&, const std::vector<Slot>& inputs) {
  if (inputs.size() > 1) {
    std::optional<Slot> bias;
    if (inputs.size() > 2) bias = inputs[2];
    if (const Slot y = lowering.linear(inputs[0], inputs[1], bias); y >= 0) return y;
    // A weight that depends on the batch: each sample has its own product.
    const Slot product = lowering.matmul(inputs[0], lowering.permute(inputs[1], {1, 0}));
    if (inputs.size() == 2) return product;
    return lowering.map(Expr::operand(0) + Expr::operand(1), {product, inputs[2]});
  }
  return lowering.linear(inputs[0], *lowering.parameter("weight"), lowering.parameter("bias"));
}

const Register<OpRecord> registered{{
    .name = "linear",
    .class_name = "Linear",
    .function = "torch._C._nn.linear",
    .mase_type = "module_related_func",
    .summary = "y = x W^T + b",
    .attributes = {{
        integer_field("in_features", "size of the last dimension of x").from(0),
        integer_field("out_features", "size of the last dimension of y").from(0),
        boolean_field("bias", "add a learned bias", true),
    }},
    .max_inputs = 3,
    .operands = {"data_in", "weight", "bias", "data_out"},
    .required_operands = {"data_in", "weight"},
    .product = ProductInfo{},
    .params = params,
    .infer = infer,
    .eval = eval,
    .grad = grad,
    .cost = cost,
    .repr = repr,
    .lower = lower,
    .complete =
        [](Dict& attributes, const std::vector<Shape>& inputs, int64_t outputs) {
          if (!attributes.contains("in_features") && !inputs[0].empty())
            attributes.set("in_features", inputs[0].back());
          if (!attributes.contains("out_features") && outputs > 0)
            attributes.set("out_features", outputs);
        },
}};

}  // namespace
}  // namespace mase::linear_op
