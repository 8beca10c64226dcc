// SPDX-License-Identifier: Apache-2.0
// TableLinear: y[o] = sum over i of t[o][i](x[i]), every edge a function of one input of its own.
// While training relaxes it, an edge is a sum of hat functions (straight lines between knots). With
// `rounded` inputs are rounded to codes of input_width bits and every edge's value to output_frac
// bits after the point: a table of whole numbers, which is what hardware has. Gradients are those
// of the straight lines either way.
#include "mase/ops/table_linear.h"

#include <algorithm>
#include <cmath>

#include "mase/ir/op.h"

namespace mase {

TableEdges::TableEdges(const Value& attributes)
    : in(attributes["in_features"].as_int("in_features")),
      out(attributes["out_features"].as_int("out_features")),
      knots(attributes["knots"].as_int("knots")),
      input_width(static_cast<int>(attributes["input_width"].as_int("input_width"))),
      input_frac(static_cast<int>(attributes["input_frac"].as_int("input_frac"))),
      output_frac(static_cast<int>(attributes["output_frac"].as_int("output_frac"))),
      rounded(attributes["rounded"].as_bool("rounded")) {}

double TableEdges::low() const { return -std::ldexp(1.0, input_width - 1 - input_frac); }

double TableEdges::high() const {
  return std::ldexp(std::ldexp(1.0, input_width - 1) - 1, -input_frac);
}

TableEdges::Place TableEdges::place(double x) const {
  // What is no number is at the low end.
  if (!(x > low())) return {0, 0, false};
  if (x >= high()) return {knots - 2, 1, false};
  const double at = (x - low()) / (high() - low()) * static_cast<double>(knots - 1);
  const int64_t knot = std::min(knots - 2, static_cast<int64_t>(at));
  return {knot, at - static_cast<double>(knot), true};
}

double TableEdges::rounded_input(double x) const {
  return std::clamp(std::ldexp(std::floor(std::ldexp(x, input_frac) + 0.5), -input_frac), low(),
                    high());
}

double TableEdges::output_code(const double* heights, double x) const {
  const Place p = place(x);
  const double value = heights[p.knot] * (1 - p.share) + heights[p.knot + 1] * p.share;
  return std::floor(std::ldexp(value, output_frac) + 0.5);
}

}  // namespace mase

namespace mase::table_linear_op {
namespace {

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  const TableEdges edges(attributes);
  Shape shape = inputs[0];
  if (shape.empty() || shape.back() != edges.in)
    throw Error("",
                fmt::format("TableLinear wants {} input features, got shape {}", edges.in,
                            shape_text(shape)),
                shape.empty() ? "" : fmt::format("set in_features to {}", shape.back()));
  shape.back() = edges.out;
  return shape;
}

std::vector<ParamSpec> params(const Value& attributes) {
  for (const char* name : {"in_features", "out_features"})
    if (attributes[name].is_null())
      throw Error(attributes.position(), "", fmt::format("TableLinear: '{}' is missing", name),
                  "give the number of features");
  const TableEdges edges(attributes);
  const double bound = edges.in > 0 ? 1.0 / std::sqrt(static_cast<double>(edges.in)) : 0;
  return {{"heights", {edges.out, edges.in, edges.knots}, true, 0, bound}};
}

Array eval(const OpCall& call) {
  const TableEdges edges(call.attributes);
  const Array& x = *call.inputs[0];
  const Array& heights = *call.params.at("heights");
  const auto in = static_cast<size_t>(edges.in), out = static_cast<size_t>(edges.out),
             knots = static_cast<size_t>(edges.knots);
  Shape shape = x.shape;
  shape.back() = edges.out;
  Array y(shape);
  for (size_t row = 0; row * out < y.data.size(); ++row)
    for (size_t i = 0; i < in; ++i) {
      const double v =
          edges.rounded ? edges.rounded_input(x.data[row * in + i]) : x.data[row * in + i];
      const TableEdges::Place p = edges.place(v);
      for (size_t o = 0; o < out; ++o) {
        const double* const edge = heights.data.data() + (o * in + i) * knots;
        y.data[row * out + o] += edges.rounded
                                     ? std::ldexp(edges.output_code(edge, v), -edges.output_frac)
                                     : edge[p.knot] * (1 - p.share) + edge[p.knot + 1] * p.share;
      }
    }
  return y;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  const TableEdges edges(call.attributes);
  const Array& x = *call.inputs[0];
  const Array& heights = *call.params.at("heights");
  const auto in = static_cast<size_t>(edges.in), out = static_cast<size_t>(edges.out),
             knots = static_cast<size_t>(edges.knots);
  Array gx(x.shape), gh(heights.shape);
  const double slope = static_cast<double>(edges.knots - 1) / (edges.high() - edges.low());
  for (size_t row = 0; row * out < g.data.size(); ++row)
    for (size_t i = 0; i < in; ++i) {
      const double v = x.data[row * in + i];
      const TableEdges::Place p = edges.place(edges.rounded ? edges.rounded_input(v) : v);
      for (size_t o = 0; o < out; ++o) {
        const size_t edge = (o * in + i) * knots + static_cast<size_t>(p.knot);
        const double d = g.data[row * out + o];
        gh.data[edge] += d * (1 - p.share);
        gh.data[edge + 1] += d * p.share;
        if (p.inside)
          gx.data[row * in + i] += d * slope * (heights.data[edge + 1] - heights.data[edge]);
      }
    }
  OpGradients result;
  result.inputs.push_back(std::move(gx));
  result.params["heights"] = std::move(gh);
  return result;
}

Field number(const char* name, int64_t value, int64_t least, int64_t most, const char* help) {
  return {.name = name,
          .type = FieldType::integer,
          .default_value = value,
          .help = help,
          .minimum = static_cast<double>(least),
          .maximum = static_cast<double>(most)};
}

const Register<OpRecord> registered{{
    .name = "table_linear",
    .class_name = "TableLinear",
    .mase_type = "module_related_func",
    .summary = "sums of tables, one table of one input for each edge",
    .attributes = {{
        {.name = "in_features",
         .type = FieldType::integer,
         .help = "size of the last dimension of x",
         .minimum = 0},
        {.name = "out_features",
         .type = FieldType::integer,
         .help = "size of the last dimension of y",
         .minimum = 0},
        number("knots", 9, 2, 256, "between which every edge is a straight line"),
        number("input_width", 6, 2, 10, "bits of an input's code, two's complement"),
        number("input_frac", 3, -16, 16, "of them after the point"),
        number("output_frac", 4, -16, 16, "bits after the point of every edge's value"),
        {.name = "rounded",
         .type = FieldType::boolean,
         .default_value = false,
         .help = "inputs and edges are rounded: tables of whole numbers"},
    }},
    .operands = {"data_in", "data_out"},
    .params = params,
    .infer = infer,
    .eval = eval,
    .grad = grad,
    .cost =
        [](const Value&, const std::vector<Shape>& inputs, const Shape& out) {
          return OpCost{0, element_count(inputs[0]) * out.back()};
        },
    .repr =
        [](const Value& attributes) {
          const TableEdges edges(attributes);
          return fmt::format("in_features={}, out_features={}, knots={}", edges.in, edges.out,
                             edges.knots);
        },
    .complete =
        [](Dict& attributes, const std::vector<Shape>& inputs, int64_t outputs) {
          if (!attributes.contains("in_features") && !inputs[0].empty())
            attributes.set("in_features", inputs[0].back());
          if (!attributes.contains("out_features") && outputs > 0)
            attributes.set("out_features", outputs);
        },
}};

}  // namespace
}  // namespace mase::table_linear_op
