// SPDX-License-Identifier: Apache-2.0
// topk: the k largest (or smallest) values along a dimension, and where they stand; the largest
// first, of equal ones the first.
#include <cmath>
#include <numeric>

#include "mase/base/fields.h"
#include "mase/ops/along.h"

namespace mase::topk_op {
namespace {

Along line_of(const Value& attributes, const Shape& x) {
  const Along along(x, attributes["dim"].as_int());
  const int64_t k = attributes["k"].as_int();
  if (k > static_cast<int64_t>(along.size))
    throw Error("", fmt::format("the {} largest of {} values", k, along.size), "take fewer");
  return along;
}

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  const Along along = line_of(attributes, inputs[0]);
  checked_result(attributes, 2);
  Shape shape = inputs[0];
  if (!shape.empty()) shape[along.dim] = attributes["k"].as_int();
  return shape;
}

// visit(place in x, index along the dimension, place in the result)
template <class Visit>
void each(const OpCall& call, const Visit& visit) {
  const Array& x = *call.inputs[0];
  const Along along = line_of(call.attributes, x.shape);
  const bool largest = call.attributes["largest"].as_bool();
  const auto k = static_cast<size_t>(call.attributes["k"].as_int());
  std::vector<size_t> order(along.size);
  for (size_t o = 0; o < along.outer; ++o)
    for (size_t i = 0; i < along.inner; ++i) {
      std::iota(order.begin(), order.end(), 0);
      const auto at = [&](size_t index) { return x.data[along.place(o, index, i)]; };
      std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        if (std::isnan(at(a)) || std::isnan(at(b)))  // NaN is the largest
          return largest ? std::isnan(at(a)) && !std::isnan(at(b))
                         : std::isnan(at(b)) && !std::isnan(at(a));
        return largest ? at(a) > at(b) : at(a) < at(b);
      });
      for (size_t r = 0; r < k; ++r)
        visit(along.place(o, order[r], i), order[r], (o * k + r) * along.inner + i);
    }
}

Array eval(const OpCall& call) {
  const Array& x = *call.inputs[0];
  Array y(infer(call.attributes, {x.shape}));
  const bool where = checked_result(call.attributes, 2) == 1;
  each(call, [&](size_t from, size_t index, size_t to) {
    y.data[to] = where ? static_cast<double>(index) : x.data[from];
  });
  return y;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  OpGradients result;
  result.inputs.emplace_back(call.inputs[0]->shape);
  if (checked_result(call.attributes, 2) == 1) return result;  // a place has no gradient
  each(call, [&](size_t to, size_t, size_t from) { result.inputs[0].data[to] = g.data[from]; });
  return result;
}

const Register<OpRecord> registered{{
    .name = "topk",
    .function = "torch.topk",
    .mase_type = "builtin_func",
    .summary = "the largest values of a dimension, and where they stand",
    .attributes =
        {{integer_field("k", "how many", 1).from(0), integer_field("dim", "the dimension", -1),
          boolean_field("largest", "the largest, not the smallest", true),
          boolean_field("sorted", "kept for PyTorch's form; results are always in order", true),
          result_field()}},
    .results =
        ResultsInfo{.count = [](const Value&, const std::vector<Shape>&) { return int64_t{2}; },
                    .elements = {ElementRule::promoted, ElementRule::integer}},
    .infer = infer,
    .eval = eval,
    .grad = grad,
    .cost =
        [](const Value&, const std::vector<Shape>& inputs, const Shape&) {
          return OpCost{0, element_count(inputs[0])};
        },
}};

}  // namespace
}  // namespace mase::topk_op
