// SPDX-License-Identifier: Apache-2.0
// PReLU: x, or a learned slope times x where it is negative; one slope, or one for each channel,
// dim 1 (He et al., 2015).
#include "mase/base/broadcast.h"
#include "mase/base/fields.h"
#include "mase/ops/call.h"
#include "mase/ops/elementwise.h"

namespace mase::prelu_op {
namespace {

Expr expr() {
  const Expr x = Expr::operand(0);
  return select(less(0.0, x), x, x * Expr::operand(1));
}

// The slopes in the shape that stretches over x.
Shape slope_shape(const Shape& x, int64_t count) {
  if (count == 1 || x.size() < 2) return {count};
  Shape shape(x.size() - 1, 1);
  shape[0] = count;
  return shape;
}

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  const int64_t count = attributes["num_parameters"].as_int();
  const Shape& x = inputs[0];
  const int64_t channels = x.size() > 1 ? x[1] : 1;
  if (count != 1 && count != channels)
    throw Error("", fmt::format("PReLU has {} slopes for {} channels", count, channels),
                "give one, or one for each channel");
  return x;
}

Array eval(const OpCall& call) {
  const Array& x = *call.inputs[0];
  Array slope = *call.params.at("weight");
  slope.shape = slope_shape(x.shape, slope.shape[0]);
  const std::vector<size_t> places = broadcast_places(slope.shape, x.shape);
  Array y(x.shape);
  for (size_t i = 0; i < y.data.size(); ++i)
    y.data[i] = expr().evaluate({x.data[i], slope.data[places[i]]});
  return y;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  const Array& x = *call.inputs[0];
  Array slope = *call.params.at("weight");
  const Shape own = slope.shape;
  slope.shape = slope_shape(x.shape, slope.shape[0]);
  const std::vector<size_t> places = broadcast_places(slope.shape, x.shape);
  Array gx(x.shape), gw(own);
  for (size_t i = 0; i < x.data.size(); ++i) {
    const double w = slope.data[places[i]];
    gx.data[i] = g.data[i] * (x.data[i] > 0 ? 1.0 : w);
    if (!(x.data[i] > 0)) gw.data[places[i]] += g.data[i] * x.data[i];
  }
  return layer_gradients(call, std::move(gx), std::move(gw));
}

Slot lower(Lowering& lowering, const Value&, const std::vector<Slot>& inputs) {
  const Slot weight = *lowering.parameter("weight");
  const Shape shape = slope_shape(lowering.shape(inputs[0]), lowering.shape(weight)[0]);
  return lowering.map(expr(), {inputs[0], lowering.reshape(weight, shape)});
}

const Register<OpRecord> registered{{
    .name = "prelu",
    .class_name = "PReLU",
    .mase_type = "module_related_func",
    .summary = "x, or a learned slope times x where it is negative",
    .attributes =
        {{integer_field("num_parameters", "slopes: 1, or one for each channel", 1).from(1),
          number_field("init", "the slopes' first value", 0.25)}},
    .operands = {"data_in", "weight", "data_out"},
    .required_operands = {"data_in"},
    .params =
        [](const Value& attributes) {
          return std::vector<ParamSpec>{{"weight",
                                         {attributes["num_parameters"].as_int()},
                                         true,
                                         attributes["init"].as_double()}};
        },
    .infer = infer,
    .eval = eval,
    .grad = grad,
    .cost =
        [](const Value&, const std::vector<Shape>&, const Shape& out) {
          return OpCost{0, element_count(out)};
        },
    .repr =
        [](const Value& attributes) {
          return fmt::format("num_parameters={}", attributes["num_parameters"].as_int());
        },
    .lower = lower,
}};

}  // namespace
}  // namespace mase::prelu_op
