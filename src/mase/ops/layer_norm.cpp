// SPDX-License-Identifier: Apache-2.0
// LayerNorm: each row normalised over its last dimensions (Ba et al., 2016).
#include <cmath>

#include "mase/base/fields.h"
#include "mase/ir/op.h"
#include "mase/ops/call.h"

namespace mase::layer_norm_op {
namespace {

Shape normalized_shape(const Value& attributes) {
  const Value& given = attributes["normalized_shape"];
  return given.is_int() ? Shape{given.as_int()} : given.as_int_list("normalized_shape");
}

std::optional<std::string> shape_fault(const Value& value) {
  const List sizes = value.is_list() ? value.as_list() : List{value};
  if (sizes.empty()) return "expected at least one size";
  for (const Value& size : sizes)
    if (!size.is_int() || size.as_int() < 0) return "expected a size or a list of sizes";
  return {};
}

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  const Shape wanted = normalized_shape(attributes);
  const Shape& shape = inputs[0];
  if (shape.size() < wanted.size() || !std::equal(wanted.rbegin(), wanted.rend(), shape.rbegin()))
    throw Error("", fmt::format("LayerNorm wants last dimensions {}, got shape {}",
                                shape_text(wanted), shape_text(shape)));
  return shape;
}

std::vector<ParamSpec> params(const Value& attributes) {
  if (!attributes["elementwise_affine"].as_bool()) return {};
  const Shape shape = normalized_shape(attributes);
  return {{"weight", shape, true, 1}, {"bias", shape, true, 0}};
}

struct Row {
  double mean, inverse;  // 1 / sqrt(variance + eps)
};

Row statistics(const double* x, size_t size, double eps) {
  double sum = 0, squares = 0;
  for (size_t i = 0; i < size; ++i) sum += x[i];
  const double mean = sum / static_cast<double>(size);
  for (size_t i = 0; i < size; ++i) squares += (x[i] - mean) * (x[i] - mean);
  return {mean, 1.0 / std::sqrt(squares / static_cast<double>(size) + eps)};
}

Array eval(const OpCall& call) {
  const Array& x = *call.inputs[0];
  const auto size = static_cast<size_t>(element_count(normalized_shape(call.attributes)));
  const double eps = call.attributes["eps"].as_double();
  const Array* weight = param_of(call, "weight");
  const Array* bias = param_of(call, "bias");
  Array y(x.shape);
  for (size_t start = 0; start < x.data.size(); start += size) {
    const Row row = statistics(&x.data[start], size, eps);
    for (size_t i = 0; i < size; ++i)
      y.data[start + i] =
          (x.data[start + i] - row.mean) * row.inverse * (weight ? weight->data[i] : 1.0) +
          (bias ? bias->data[i] : 0.0);
  }
  return y;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  const Array& x = *call.inputs[0];
  const Shape shape = normalized_shape(call.attributes);
  const auto size = static_cast<size_t>(element_count(shape));
  const double eps = call.attributes["eps"].as_double();
  const Array* weight = param_of(call, "weight");
  Array gx(x.shape), gw(shape), gb(shape);
  for (size_t start = 0; start < x.data.size(); start += size) {
    const Row row = statistics(&x.data[start], size, eps);
    const auto scaled = [&](size_t i) {
      return g.data[start + i] * (weight ? weight->data[i] : 1.0);
    };
    const auto normal = [&](size_t i) { return (x.data[start + i] - row.mean) * row.inverse; };
    double sum = 0, dot = 0;
    for (size_t i = 0; i < size; ++i) {
      sum += scaled(i);
      dot += scaled(i) * normal(i);
      gw.data[i] += g.data[start + i] * normal(i);
      gb.data[i] += g.data[start + i];
    }
    for (size_t i = 0; i < size; ++i)
      gx.data[start + i] =
          row.inverse * (scaled(i) - (sum + normal(i) * dot) / static_cast<double>(size));
  }
  return layer_gradients(call, std::move(gx), std::move(gw), std::move(gb));
}

OpCost cost(const Value&, const std::vector<Shape>& inputs, const Shape&) {
  // Mean, variance (subtract, square, add), normalise, scale and shift: per element.
  return {0, 8 * element_count(inputs[0])};
}

std::string repr(const Value& attributes) {
  const Shape shape = normalized_shape(attributes);
  return fmt::format("({}{}), eps={}, elementwise_affine={}", fmt::join(shape, ", "),
                     shape.size() == 1 ? "," : "", python_repr(attributes["eps"]),
                     python_repr(attributes["elementwise_affine"]));
}

Slot lower(Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs) {
  return lowering.layer_norm(inputs[0], static_cast<int64_t>(normalized_shape(attributes).size()),
                             lowering.parameter("weight"), lowering.parameter("bias"),
                             attributes["eps"].as_double());
}

const Register<OpRecord> registered{{
    .name = "layer_norm",
    .class_name = "LayerNorm",
    .function = "torch.nn.functional.layer_norm",
    .mase_type = "module_related_func",
    .summary = "normalises each row over its last dimensions",
    .attributes = {{
        {.name = "normalized_shape",
         .help = "size of the last dimension, or list of the last dimensions",
         .required = true,
         .check = shape_fault},
        number_field("eps", "added to the variance", 1e-5).from(0),
        boolean_field("elementwise_affine", "learn a scale and a shift per element", true),
    }},
    .operands = {"data_in", "weight", "bias", "data_out"},
    .required_operands = {"data_in"},
    .params = params,
    .infer = infer,
    .eval = eval,
    .grad = grad,
    .cost = cost,
    .repr = repr,
    .lower = lower,
    .complete =
        [](Dict& attributes, const std::vector<Shape>& inputs, int64_t) {
          if (!attributes.contains("normalized_shape") && !inputs[0].empty())
            attributes.set("normalized_shape", inputs[0].back());
        },
}};

}  // namespace
}  // namespace mase::layer_norm_op
