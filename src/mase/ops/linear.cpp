// SPDX-License-Identifier: Apache-2.0
// Linear: y = x W^T + b over the last dimension, for any rank of x.
#include <cmath>

#include "mase/ir/op.h"

namespace mase {
namespace {

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  const int64_t in = attributes["in_features"].as_int(), out = attributes["out_features"].as_int();
  Shape shape = inputs[0];
  if (shape.empty() || shape.back() != in)
    throw Error("",
                fmt::format("Linear wants {} input features, got shape {}", in, shape_text(shape)),
                shape.empty() ? "" : fmt::format("set in_features to {}", shape.back()));
  shape.back() = out;
  return shape;
}

std::vector<ParamSpec> params(const Value& attributes) {
  const int64_t in = attributes["in_features"].as_int(), out = attributes["out_features"].as_int();
  const double bound = in > 0 ? 1.0 / std::sqrt(static_cast<double>(in)) : 0;
  std::vector<ParamSpec> specs = {{"weight", {out, in}, true, 0, bound}};
  if (attributes["bias"].as_bool()) specs.push_back({"bias", {out}, true, 0, bound});
  return specs;
}

Array eval(const OpCall& call) {
  const Array& x = *call.inputs[0];
  const Array& w = *call.params.at("weight");
  const auto bias = call.params.find("bias");
  Array y(infer(call.attributes, {x.shape}));
  const size_t in = static_cast<size_t>(w.shape[1]), out = static_cast<size_t>(w.shape[0]);
  for (size_t row = 0; row * out < y.data.size(); ++row)
    for (size_t o = 0; o < out; ++o) {
      double sum = bias == call.params.end() ? 0 : bias->second->data[o];
      for (size_t i = 0; i < in; ++i) sum += x.data[row * in + i] * w.data[o * in + i];
      y.data[row * out + o] = sum;
    }
  return y;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  const Array& x = *call.inputs[0];
  const Array& w = *call.params.at("weight");
  const size_t in = static_cast<size_t>(w.shape[1]), out = static_cast<size_t>(w.shape[0]);
  OpGradients result;
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
  result.inputs.push_back(std::move(gx));
  result.params["weight"] = std::move(gw);
  if (call.params.count("bias")) result.params["bias"] = std::move(gb);
  return result;
}

OpCost cost(const Value& attributes, const std::vector<Shape>& inputs, const Shape&) {
  const int64_t macs = element_count(inputs[0]) * attributes["out_features"].as_int();
  return {macs, 2 * macs};
}

std::string repr(const Value& attributes) {
  return fmt::format("in_features={}, out_features={}, bias={}", attributes["in_features"].as_int(),
                     attributes["out_features"].as_int(),
                     attributes["bias"].as_bool() ? "True" : "False");
}

Slot lower(Lowering& lowering, const Value&, const std::vector<Slot>& inputs) {
  return lowering.linear(inputs[0], *lowering.parameter("weight"), lowering.parameter("bias"));
}

const Register<OpRecord> registered{{
    .name = "linear",
    .class_name = "Linear",
    .mase_type = "module_related_func",
    .summary = "y = x W^T + b",
    .attributes = {{
        {.name = "in_features",
         .type = FieldType::integer,
         .help = "size of the last dimension of x",
         .required = true,
         .minimum = 0},
        {.name = "out_features",
         .type = FieldType::integer,
         .help = "size of the last dimension of y",
         .required = true,
         .minimum = 0},
        {.name = "bias",
         .type = FieldType::boolean,
         .default_value = true,
         .help = "add a learned bias"},
    }},
    .operands = {"data_in", "weight", "bias", "data_out"},
    .required_operands = {"data_in", "weight"},
    .params = params,
    .infer = infer,
    .eval = eval,
    .grad = grad,
    .cost = cost,
    .repr = repr,
    .lower = lower,
}};

}  // namespace
}  // namespace mase
