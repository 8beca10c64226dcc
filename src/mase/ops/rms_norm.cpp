// SPDX-License-Identifier: Apache-2.0
// RMSNorm: each row divided by the root of its mean square over the last dimensions (Zhang and
// Sennrich, 2019). The mean square has a number format of its own where `statistics` asks for one.
#include <cmath>
#include <limits>
#include <vector>

#include "mase/base/fields.h"
#include "mase/ir/op.h"
#include "mase/ops/call.h"

namespace mase::rms_norm_op {
namespace {

Shape normalized_shape(const Value& attributes) {
  const Value& given = attributes["normalized_shape"];
  return given.is_int() ? Shape{given.as_int()} : given.as_int_list("normalized_shape");
}

// PyTorch's choice when none is given: the distance from 1 to the next single-precision number.
double eps_of(const Value& attributes) {
  return attributes["eps"].is_null() ? static_cast<double>(std::numeric_limits<float>::epsilon())
                                     : attributes["eps"].as_double();
}

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  const Shape own = normalized_shape(attributes);
  const Shape& x = inputs[0];
  if (x.size() < own.size() || !std::equal(own.rbegin(), own.rend(), x.rbegin()))
    throw Error("", fmt::format("RMSNorm over {} got {}", shape_text(own), shape_text(x)),
                "the last dimensions must be these");
  return x;
}

struct Rows {
  size_t count, width;
  Rows(const Value& attributes, const Array& x)
      : width(static_cast<size_t>(element_count(normalized_shape(attributes)))) {
    count = width > 0 ? x.data.size() / width : 0;
  }
};

// Of every row.
std::vector<double> inverses(const OpCall& call, const Rows& rows) {
  const Array& x = *call.inputs[0];
  Shape shape = x.shape;
  for (size_t i = 0; i < normalized_shape(call.attributes).size(); ++i)
    shape[shape.size() - 1 - i] = 1;
  Array squares(shape);
  for (size_t r = 0; r < rows.count; ++r) {
    const double* row = x.data.data() + r * rows.width;
    for (size_t i = 0; i < rows.width; ++i) squares.data[r] += row[i] * row[i];
    squares.data[r] /= static_cast<double>(rows.width);
  }
  std::vector<double> result;
  for (const double mean : call.rounded(std::move(squares), "statistics").data)
    result.push_back(1.0 / std::sqrt(mean + eps_of(call.attributes)));
  return result;
}

Array eval(const OpCall& call) {
  const Array& x = *call.inputs[0];
  const Array* weight = param_of(call, "weight");
  const Rows rows(call.attributes, x);
  const std::vector<double> inverse_of = inverses(call, rows);
  Array y(x.shape);
  for (size_t r = 0; r < rows.count; ++r) {
    const double* row = x.data.data() + r * rows.width;
    const double inverse = inverse_of[r];
    for (size_t i = 0; i < rows.width; ++i)
      y.data[r * rows.width + i] = row[i] * inverse * (weight ? weight->data[i] : 1.0);
  }
  return y;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  const Array& x = *call.inputs[0];
  const Array* weight = param_of(call, "weight");
  const Rows rows(call.attributes, x);
  const std::vector<double> inverse_of = inverses(call, rows);
  Array gx(x.shape), gw(normalized_shape(call.attributes));
  for (size_t r = 0; r < rows.count; ++r) {
    const double* row = x.data.data() + r * rows.width;
    const double* up = g.data.data() + r * rows.width;
    const double inverse = inverse_of[r];
    double sum = 0;  // of g w x
    for (size_t i = 0; i < rows.width; ++i) {
      const double w = weight ? weight->data[i] : 1.0;
      sum += up[i] * w * row[i];
      gw.data[i] += up[i] * row[i] * inverse;
    }
    const double share = sum * inverse * inverse / static_cast<double>(rows.width);
    for (size_t i = 0; i < rows.width; ++i) {
      const double w = weight ? weight->data[i] : 1.0;
      gx.data[r * rows.width + i] = inverse * (up[i] * w - row[i] * share);
    }
  }
  return layer_gradients(call, std::move(gx), std::move(gw));
}

Slot lower(Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs) {
  const Expr x = Expr::operand(0), y = Expr::operand(1);
  std::vector<int64_t> dims;
  for (int64_t i = 1; i <= static_cast<int64_t>(normalized_shape(attributes).size()); ++i)
    dims.push_back(-i);
  const Slot squares = lowering.map(x * x, {inputs[0]});
  const Slot mean =
      lowering.rounded(lowering.reduce(ReduceKind::mean, squares, dims, true), "statistics");
  const Expr scaled = x / sqrt(y + eps_of(attributes));
  if (const auto weight = lowering.parameter("weight"))
    return lowering.map(scaled * Expr::operand(2), {inputs[0], mean, *weight});
  return lowering.map(scaled, {inputs[0], mean});
}

const Register<OpRecord> registered{{
    .name = "rms_norm",
    .class_name = "RMSNorm",
    .mase_type = "module_related_func",
    .summary = "rows divided by the root of their mean square",
    .attributes = {{{.name = "normalized_shape",
                     .help = "the last dimensions, a size or several",
                     .required = true},
                    number_field("eps", "added to the mean square").from(0),
                    boolean_field("elementwise_affine", "learn a scale", true)}},
    .operands = {"data_in", "weight", "statistics", "data_out"},
    .required_operands = {"data_in"},
    .inner_operands = {"statistics"},
    .params =
        [](const Value& attributes) {
          std::vector<ParamSpec> specs;
          if (attributes["elementwise_affine"].as_bool())
            specs.push_back({"weight", normalized_shape(attributes), true, 1});
          return specs;
        },
    .infer = infer,
    .eval = eval,
    .grad = grad,
    .cost =
        [](const Value&, const std::vector<Shape>&, const Shape& out) {
          return OpCost{0, 4 * element_count(out)};
        },
    .repr =
        [](const Value& attributes) {
          const Shape shape = normalized_shape(attributes);
          return fmt::format("({}{}), eps={}, elementwise_affine={}", fmt::join(shape, ", "),
                             shape.size() == 1 ? "," : "", python_repr(attributes["eps"]),
                             python_repr(attributes["elementwise_affine"]));
        },
    .lower = lower,
    .complete =
        [](Dict& attributes, const std::vector<Shape>& inputs, int64_t) {
          if (!attributes.contains("normalized_shape") && !inputs[0].empty())
            attributes.set("normalized_shape", inputs[0].back());
        },
}};

}  // namespace
}  // namespace mase::rms_norm_op
