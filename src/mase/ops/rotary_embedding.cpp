// SPDX-License-Identifier: Apache-2.0
// rotary_embedding: pairs (i, i + d/2) of each position of [.., S, d] turned by an angle that grows
// with the position (Su et al., 2021), in the order of the halves that Llama uses. Angles are a
// position times powers of a base, or times given frequencies; these are products of single
// precision, with which such networks were trained. A second input [N, S] says the positions of
// [N, .., S, d], whole numbers below `positions`; without, they are 0, 1, 2, ... The cosines and
// sines have a number format of their own where `table` asks for one.
#include <algorithm>
#include <cmath>

#include "mase/base/fields.h"
#include "mase/ir/op.h"

namespace mase::rotary_embedding_op {
namespace {

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  const Shape& x = inputs[0];
  if (x.size() < 2 || x.back() % 2 != 0)
    throw Error(
        "", fmt::format("rotary_embedding wants [.., S, d] with an even d, got {}", shape_text(x)));
  const Value& frequencies = attributes["frequencies"];
  if (frequencies.is_list() && static_cast<int64_t>(frequencies.as_list().size()) * 2 != x.back())
    throw Error("",
                fmt::format("{} frequencies for {}", frequencies.as_list().size(), shape_text(x)),
                "there is one for each pair");
  if (inputs.size() < 2) return x;
  if (x.size() < 3 || inputs[1] != Shape{x[0], x[x.size() - 2]})
    throw Error("", fmt::format("positions {} for {}", shape_text(inputs[1]), shape_text(x)),
                "[N, S, d] or [N, .., S, d] takes [N, S]");
  if (attributes["positions"].is_null())
    throw Error("", "how many positions there are is not said", "give 'positions'");
  return x;
}

struct Angles {
  size_t positions, half;
  std::vector<double> cosine, sine;  // [positions][half]

  Angles(const Value& attributes, const Shape& x, bool given)
      : positions(static_cast<size_t>(given ? attributes["positions"].as_int() : x[x.size() - 2])),
        half(static_cast<size_t>(x.back() / 2)) {
    const double base = attributes["base"].as_double(), scale = attributes["scale"].as_double();
    const Value& frequencies = attributes["frequencies"];
    for (size_t s = 0; s < positions; ++s)
      for (size_t i = 0; i < half; ++i) {
        const double angle =
            frequencies.is_list()
                ? static_cast<double>(static_cast<float>(s) *
                                      static_cast<float>(frequencies.as_list()[i].as_double()))
                : static_cast<double>(s) *
                      std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
        cosine.push_back(scale * std::cos(angle));
        sine.push_back(scale * std::sin(angle));
      }
  }
};

// Turned forwards, or backwards for the gradient.
Array turned(const OpCall& call, const Array& x, double direction) {
  const Array* places = call.inputs.size() > 1 ? call.inputs[1] : nullptr;
  Angles angles(call.attributes, x.shape, places);
  for (std::vector<double>* table : {&angles.cosine, &angles.sine}) {
    Array values({static_cast<int64_t>(angles.positions), static_cast<int64_t>(angles.half)});
    values.data = std::move(*table);
    *table = call.rounded(std::move(values), "table").data;
  }
  Array y(x.shape);
  const size_t half = angles.half, rows = half > 0 ? x.data.size() / (2 * half) : 0;
  const auto length = static_cast<size_t>(x.shape[x.shape.size() - 2]);
  const size_t each = rows / static_cast<size_t>(std::max<int64_t>(1, x.shape[0]));
  for (size_t r = 0; r < rows; ++r) {
    size_t position = r % length;
    if (places) {
      const double number = places->data[r / each * length + position];
      if (!(number >= 0 && number < static_cast<double>(angles.positions)))
        throw Error("", fmt::format("position {} of {}", number, angles.positions));
      position = static_cast<size_t>(number);
    }
    for (size_t i = 0; i < half; ++i) {
      const size_t at = position * half + i, first = r * 2 * half + i;
      const double c = angles.cosine[at], s = direction * angles.sine[at];
      y.data[first] = x.data[first] * c - x.data[first + half] * s;
      y.data[first + half] = x.data[first + half] * c + x.data[first] * s;
    }
  }
  return y;
}

Slot lower(Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs) {
  const Shape whole = lowering.shape(inputs[0]);
  const bool given = inputs.size() > 1;
  const Angles angles(attributes, whole, given);
  const auto half = static_cast<int64_t>(angles.half);
  const Shape shape = {static_cast<int64_t>(angles.positions), half};
  Slot c = lowering.rounded(lowering.constant(shape, {angles.cosine.begin(), angles.cosine.end()}),
                            "table");
  Slot s =
      lowering.rounded(lowering.constant(shape, {angles.sine.begin(), angles.sine.end()}), "table");
  if (given) {
    Shape rows(whole.size(), 1);
    rows.front() = whole.front();
    rows[rows.size() - 2] = whole[whole.size() - 2];
    rows.back() = half;
    c = lowering.reshape(lowering.take(c, inputs[1]), rows);
    s = lowering.reshape(lowering.take(s, inputs[1]), rows);
  }
  const Slot first = lowering.slice(inputs[0], -1, 0, 1, half);
  const Slot second = lowering.slice(inputs[0], -1, half, 1, half);
  const Expr a = Expr::operand(0), b = Expr::operand(1), co = Expr::operand(2),
             si = Expr::operand(3);
  return lowering.concat({lowering.map(a * co - b * si, {first, second, c, s}),
                          lowering.map(b * co + a * si, {first, second, c, s})},
                         -1);
}

const Register<OpRecord> registered{{
    .name = "rotary_embedding",
    .function = "rotary_embedding",
    .mase_type = "builtin_func",
    .summary = "positions as rotations of pairs",
    .attributes =
        {{number_field("base", "of the angles", 10000.0).from(1),
          list_field("frequencies", "an angle for each pair, in place of the base's powers"),
          number_field("scale", "of the rotated pairs", 1.0),
          integer_field("positions", "how many there are, where a second input says which")
              .between(1, 1 << 24)}},
    .max_inputs = 2,
    .index_inputs = {1},
    .operands = {"data_in", "table", "data_out"},
    .inner_operands = {"table"},
    .element = ElementRule::real,
    .infer = infer,
    .eval = [](const OpCall& call) { return turned(call, *call.inputs[0], 1); },
    .grad =
        [](const OpCall& call, const Array&, const Array& g) {
          OpGradients result;
          result.inputs.push_back(turned(call, g, -1));
          if (call.inputs.size() > 1) result.inputs.emplace_back(call.inputs[1]->shape);
          return result;
        },
    .cost =
        [](const Value&, const std::vector<Shape>&, const Shape& out) {
          return OpCost{0, 3 * element_count(out)};
        },
    .lower = lower,
}};

}  // namespace
}  // namespace mase::rotary_embedding_op
