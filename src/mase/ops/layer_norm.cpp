// SPDX-License-Identifier: Apache-2.0
// LayerNorm: each row normalised over its last dimensions (Ba et al., 2016).
#include <cmath>
#include <vector>

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

// Of every row. Mean and variance are rounded where `statistics` has a number format, the variance
// that about the rounded mean.
std::vector<Row> statistics(const OpCall& call, size_t size) {
  const Array& x = *call.inputs[0];
  Shape shape = x.shape;
  for (size_t i = 0; i < normalized_shape(call.attributes).size(); ++i)
    shape[shape.size() - 1 - i] = 1;
  Array means(shape), variances(shape);
  const double share = 1.0 / static_cast<double>(size);
  for (size_t start = 0, r = 0; start < x.data.size(); start += size, ++r) {
    for (size_t i = 0; i < size; ++i) means.data[r] += x.data[start + i];
    means.data[r] *= share;
  }
  means = call.rounded(std::move(means), "statistics");
  for (size_t start = 0, r = 0; start < x.data.size(); start += size, ++r) {
    for (size_t i = 0; i < size; ++i) {
      const double off = x.data[start + i] - means.data[r];
      variances.data[r] += off * off;
    }
    variances.data[r] *= share;
  }
  variances = call.rounded(std::move(variances), "statistics");
  std::vector<Row> rows;
  for (size_t r = 0; r < means.data.size(); ++r)
    rows.push_back(
        {means.data[r], 1.0 / std::sqrt(variances.data[r] + call.attributes["eps"].as_double())});
  return rows;
}

Array eval(const OpCall& call) {
  const Array& x = *call.inputs[0];
  const auto size = static_cast<size_t>(element_count(normalized_shape(call.attributes)));
  const Array* weight = param_of(call, "weight");
  const Array* bias = param_of(call, "bias");
  const std::vector<Row> rows = statistics(call, size);
  Array y(x.shape);
  for (size_t start = 0; start < x.data.size(); start += size) {
    const Row& row = rows[start / size];
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
  const Array* weight = param_of(call, "weight");
  const std::vector<Row> rows = statistics(call, size);
  Array gx(x.shape), gw(shape), gb(shape);
  for (size_t start = 0; start < x.data.size(); start += size) {
    const Row& row = rows[start / size];
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
  const auto weight = lowering.parameter("weight"), bias = lowering.parameter("bias");
  const double eps = attributes["eps"].as_double();
  const auto last = static_cast<int64_t>(normalized_shape(attributes).size());
  if (lowering.rounded(inputs[0], "statistics") == inputs[0])
    return lowering.layer_norm(inputs[0], last, weight, bias, eps);
  std::vector<int64_t> dims;
  for (int64_t i = 1; i <= last; ++i) dims.push_back(-i);
  const Slot mean =
      lowering.rounded(lowering.reduce(ReduceKind::mean, inputs[0], dims, true), "statistics");
  const Expr x = Expr::operand(0), y = Expr::operand(1);
  const Slot centred = lowering.map(x - y, {inputs[0], mean});
  const Slot variance = lowering.rounded(
      lowering.reduce(ReduceKind::mean, lowering.map(x * x, {centred}), dims, true), "statistics");
  Expr result = x / sqrt(y + eps);
  std::vector<Slot> operands = {centred, variance};
  if (weight) {
    result = result * Expr::operand(static_cast<int>(operands.size()));
    operands.push_back(*weight);
  }
  if (bias) {
    result = result + Expr::operand(static_cast<int>(operands.size()));
    operands.push_back(*bias);
  }
  return lowering.map(result, operands);
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
    .operands = {"data_in", "weight", "bias", "statistics", "data_out"},
    .required_operands = {"data_in"},
    .inner_operands = {"statistics"},
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
