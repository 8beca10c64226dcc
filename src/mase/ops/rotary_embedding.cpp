// SPDX-License-Identifier: Apache-2.0
// rotary_embedding: pairs (i, i + d/2) of each position of [.., S, d] turned by an angle that grows
// with the position (Su et al., 2021), in the order of the halves that Llama uses.
#include <cmath>

#include "mase/ir/op.h"

namespace mase::rotary_embedding_op {
namespace {

Shape infer(const Value&, const std::vector<Shape>& inputs) {
  const Shape& x = inputs[0];
  if (x.size() < 2 || x.back() % 2 != 0)
    throw Error(
        "", fmt::format("rotary_embedding wants [.., S, d] with an even d, got {}", shape_text(x)));
  return x;
}

struct Angles {
  size_t positions, half;
  std::vector<double> cosine, sine;  // [positions][half]

  Angles(const Value& attributes, const Shape& x)
      : positions(static_cast<size_t>(x[x.size() - 2])), half(static_cast<size_t>(x.back() / 2)) {
    const double base = attributes["base"].as_double();
    for (size_t s = 0; s < positions; ++s)
      for (size_t i = 0; i < half; ++i) {
        const double angle = static_cast<double>(s) *
                             std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
        cosine.push_back(std::cos(angle));
        sine.push_back(std::sin(angle));
      }
  }
};

// Turned forwards, or backwards for the gradient.
Array turned(const Value& attributes, const Array& x, double direction) {
  const Angles angles(attributes, x.shape);
  Array y(x.shape);
  const size_t half = angles.half, rows = half > 0 ? x.data.size() / (2 * half) : 0;
  for (size_t r = 0; r < rows; ++r)
    for (size_t i = 0; i < half; ++i) {
      const size_t at = (r % angles.positions) * half + i, first = r * 2 * half + i;
      const double c = angles.cosine[at], s = direction * angles.sine[at];
      y.data[first] = x.data[first] * c - x.data[first + half] * s;
      y.data[first + half] = x.data[first + half] * c + x.data[first] * s;
    }
  return y;
}

Slot lower(Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs) {
  const Angles angles(attributes, lowering.shape(inputs[0]));
  const auto half = static_cast<int64_t>(angles.half);
  const Shape shape = {static_cast<int64_t>(angles.positions), half};
  const Slot c = lowering.constant(shape, {angles.cosine.begin(), angles.cosine.end()});
  const Slot s = lowering.constant(shape, {angles.sine.begin(), angles.sine.end()});
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
    .attributes = {{{.name = "base",
                     .type = FieldType::number,
                     .default_value = 10000.0,
                     .help = "of the angles",
                     .minimum = 1}}},
    .infer = infer,
    .eval = [](const OpCall& call) { return turned(call.attributes, *call.inputs[0], 1); },
    .grad =
        [](const OpCall& call, const Array&, const Array& g) {
          OpGradients result;
          result.inputs.push_back(turned(call.attributes, g, -1));
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
