// SPDX-License-Identifier: Apache-2.0
// TableLinear: y[o] = sum over i of t[o][i](x[i]), every edge a function of one input of its own.
// While training relaxes it, an edge is a sum of hat functions (straight lines between knots). With
// `rounded` inputs are rounded to codes of input_width bits, an edge reads the top edge_bits of
// them, and its value is rounded to edge_frac bits after the point: a table of whole numbers, which
// is what hardware has. Gradients are those of the straight lines either way; where an input that
// wraps is beyond the codes, that of the chord to the end it left by.
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
      rounded(attributes["rounded"].as_bool("rounded")),
      wraps(attributes["overflow"].as_string("overflow") == "wrap") {}

double TableEdges::low() const { return -std::ldexp(1.0, input_width - 1 - input_frac); }

double TableEdges::high() const {
  return std::ldexp(std::ldexp(1.0, input_width - 1) - 1, -input_frac);
}

double TableEdges::value_of(int64_t code) const {
  return low() + std::ldexp(static_cast<double>(code), -input_frac);
}

TableEdges::Place TableEdges::place(double x) const {
  // What is no number is at the low end.
  if (!(x > low())) return {0, 0, false};
  if (x >= high()) return {knots - 2, 1, false};
  const double at = (x - low()) / (high() - low()) * static_cast<double>(knots - 1);
  const int64_t knot = std::min(knots - 2, static_cast<int64_t>(at));
  return {knot, at - static_cast<double>(knot), true};
}

int64_t TableEdges::code_of(double x) const {
  const double count = std::ldexp(1.0, input_width), half = std::ldexp(1.0, input_width - 1);
  double code = std::floor(std::ldexp(x, input_frac) + 0.5);
  if (!(std::abs(code) < 1e15)) code = code > 0 && !wraps ? half : -half;
  code = wraps ? code + half - std::floor((code + half) / count) * count
               : std::clamp(code, -half, half - 1) + half;
  return static_cast<int64_t>(code);
}

TableWidth TableEdges::width(double bits, double frac) const {
  const auto whole = [](double value, int least, int most) {
    return value >= least ? static_cast<int>(std::min<double>(value, most)) : least;
  };
  return {whole(bits, 0, input_width), whole(frac, -16, 16)};
}

double TableEdges::cell_width(int bits) const {
  return std::ldexp(1.0, input_width - bits - input_frac);
}

double TableEdges::middle(int64_t code, int bits) const {
  const int drop = input_width - bits;
  const double first = static_cast<double>(code >> drop << drop);
  return low() + std::ldexp(first + (std::ldexp(1.0, drop) - 1) / 2, -input_frac);
}

double TableEdges::steps(double value, int frac) {
  return std::floor(std::ldexp(value, frac) + 0.5);
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
  return {{"heights", {edges.out, edges.in, edges.knots}, true, 0, bound},
          {"edge_bits", {edges.out, edges.in}, false, static_cast<double>(edges.input_width)},
          {"edge_frac", {edges.out, edges.in}, false, static_cast<double>(edges.output_frac)}};
}

// Everything about one call that both directions need.
struct Edges : TableEdges {
  const Array &x, &heights, &bits, &fracs;
  size_t rows;

  explicit Edges(const OpCall& call)
      : TableEdges(call.attributes),
        x(*call.inputs[0]),
        heights(*call.params.at("heights")),
        bits(*call.params.at("edge_bits")),
        fracs(*call.params.at("edge_frac")),
        rows(in > 0 ? x.data.size() / static_cast<size_t>(in) : 0) {}

  const double* edge(size_t index) const {
    return heights.data.data() + index * static_cast<size_t>(knots);
  }
  TableWidth width_of(size_t index) const { return width(bits.data[index], fracs.data[index]); }
};

Array eval(const OpCall& call) {
  const Edges edges(call);
  const auto in = static_cast<size_t>(edges.in), out = static_cast<size_t>(edges.out);
  Shape shape = edges.x.shape;
  shape.back() = edges.out;
  Array y(shape);
  for (size_t row = 0; row < edges.rows; ++row)
    for (size_t i = 0; i < in; ++i) {
      const double v = edges.x.data[row * in + i];
      const int64_t code = edges.code_of(v);
      for (size_t o = 0; o < out; ++o) {
        const double* const edge = edges.edge(o * in + i);
        const TableWidth width = edges.width_of(o * in + i);
        y.data[row * out + o] += edges.rounded
                                     ? std::ldexp(edges.entry(edge, code, width), -width.frac)
                                     : edges.line(edge, v);
      }
    }
  return y;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  const Edges edges(call);
  const auto in = static_cast<size_t>(edges.in), out = static_cast<size_t>(edges.out),
             knots = static_cast<size_t>(edges.knots);
  Array gx(edges.x.shape), gh(edges.heights.shape);
  const double per_knot = static_cast<double>(edges.knots - 1) / (edges.high() - edges.low());
  for (size_t row = 0; row < edges.rows; ++row)
    for (size_t i = 0; i < in; ++i) {
      const double v = edges.x.data[row * in + i];
      const int64_t code = edges.code_of(v);
      const bool inside = edges.place(v).inside;
      for (size_t o = 0; o < out; ++o) {
        const double* const edge = edges.edge(o * in + i);
        const TableWidth width = edges.width_of(o * in + i);
        const TableEdges::Place p = edges.place(edges.rounded ? edges.middle(code, width.bits) : v);
        const size_t at = (o * in + i) * knots + static_cast<size_t>(p.knot);
        const double d = g.data[row * out + o];
        gh.data[at] += d * (1 - p.share);
        gh.data[at + 1] += d * p.share;
        double slope = 0;
        if (!edges.rounded)
          slope = inside ? per_knot * (edge[p.knot + 1] - edge[p.knot]) : 0;
        else if (inside)
          slope = edges.slope(edge, code, width);
        else if (edges.wraps)
          slope = edges.way_back(edge, v, code, width);
        gx.data[row * in + i] += d * slope;
      }
    }
  OpGradients result;
  result.inputs.push_back(std::move(gx));
  result.params["heights"] = std::move(gh);
  return result;
}

Slot lower(Lowering& to, const Value& attributes, const std::vector<Slot>& inputs) {
  return to.primitive("table_linear", attributes,
                      {inputs[0], *to.parameter("heights"), *to.parameter("edge_bits"),
                       *to.parameter("edge_frac")});
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
        number("output_frac", 4, -16, 16,
               "bits after the point of every edge's value, where edge_frac says nothing else"),
        {.name = "rounded",
         .type = FieldType::boolean,
         .default_value = false,
         .help = "inputs and edges are rounded: tables of whole numbers"},
        {.name = "overflow",
         .type = FieldType::text,
         .default_value = "saturate",
         .help = "what inputs beyond the codes become; to wrap costs no logic",
         .choices = {"saturate", "wrap"}},
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
}  // namespace mase::table_linear_op
