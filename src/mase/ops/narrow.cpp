// SPDX-License-Identifier: Apache-2.0
// narrow: some neighbouring indices of a dimension.
#include "mase/ops/dimensions.h"

namespace mase::narrow_op {
namespace {

struct Range {
  size_t dim;
  int64_t start, length;

  Range(const Value& attributes, const Shape& x)
      : dim(static_cast<size_t>(checked_dim(attributes["dim"].as_int(), x.size()))),
        start(attributes["start"].as_int()),
        length(attributes["length"].as_int()) {
    if (x.empty()) throw Error("", "narrow wants a tensor of rank 1 or more");
    if (start < 0) start += x[dim];
    if (start < 0 || length < 0 || start > x[dim] - length)
      throw Error("", fmt::format("{} indices from {} on of {}", length, start, x[dim]),
                  "take fewer");
  }
  Shape result(Shape x) const {
    x[dim] = length;
    return x;
  }
  // visit(place in x, place in y) for each element.
  template <class Visit>
  void each(const Shape& x, const Visit& visit) const {
    size_t outer = 1, inner = 1;
    for (size_t i = 0; i < dim; ++i) outer *= static_cast<size_t>(x[i]);
    for (size_t i = dim + 1; i < x.size(); ++i) inner *= static_cast<size_t>(x[i]);
    const auto run = static_cast<size_t>(length) * inner;
    for (size_t o = 0; o < outer; ++o)
      for (size_t i = 0; i < run; ++i)
        visit((o * static_cast<size_t>(x[dim]) + static_cast<size_t>(start)) * inner + i,
              o * run + i);
  }
};

Array eval(const OpCall& call) {
  const Array& x = *call.inputs[0];
  const Range range(call.attributes, x.shape);
  Array y(range.result(x.shape));
  range.each(x.shape, [&](size_t from, size_t to) { y.data[to] = x.data[from]; });
  return y;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  const Shape& x = call.inputs[0]->shape;
  OpGradients result;
  result.inputs.emplace_back(x);
  Range(call.attributes, x).each(x, [&](size_t to, size_t from) {
    result.inputs[0].data[to] = g.data[from];
  });
  return result;
}

const Register<OpRecord> registered{{
    .name = "narrow",
    .function = "torch.narrow",
    .mase_type = "implicit_func",
    .summary = "some neighbouring indices of a dimension",
    .attributes =
        {{{.name = "dim", .type = FieldType::integer, .default_value = 0, .help = "the dimension"},
          {.name = "start",
           .type = FieldType::integer,
           .default_value = 0,
           .help = "the first index; negative: from the end"},
          {.name = "length", .type = FieldType::integer, .default_value = 1, .help = "how many"}}},
    .infer =
        [](const Value& attributes, const std::vector<Shape>& inputs) {
          return Range(attributes, inputs[0]).result(inputs[0]);
        },
    .eval = eval,
    .grad = grad,
    .cost = [](const Value&, const std::vector<Shape>&, const Shape&) { return OpCost{}; },
    .lower =
        [](Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs) {
          const Range range(attributes, lowering.shape(inputs[0]));
          return lowering.slice(inputs[0], static_cast<int64_t>(range.dim), range.start, 1,
                                range.length);
        },
}};

}  // namespace
}  // namespace mase::narrow_op
