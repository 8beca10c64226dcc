// SPDX-License-Identifier: Apache-2.0
// argmax: where along a dimension the largest value is; the first of equal ones. Without a
// dimension, over all values.
#include <cmath>

#include "mase/base/fields.h"
#include "mase/ops/dimensions.h"

namespace mase::argmax_op {
namespace {

struct Line {
  Shape out;
  size_t outer = 1, size = 1, inner = 1;

  Line(const Value& attributes, const Shape& x) {
    const bool keep = attributes["keepdim"].as_bool();
    if (attributes["dim"].is_null()) {
      size = static_cast<size_t>(element_count(x));
      if (keep) out.assign(x.size(), 1);
    } else {
      const auto dim = static_cast<size_t>(checked_dim(attributes["dim"].as_int(), x.size()));
      for (size_t i = 0; i < x.size(); ++i) {
        (i < dim ? outer : i == dim ? size : inner) *= static_cast<size_t>(x[i]);
        if (i != dim)
          out.push_back(x[i]);
        else if (keep)
          out.push_back(1);
      }
    }
    if (size == 0) throw Error("", "argmax of no values", "take a dimension that is not empty");
  }
};

Array eval(const OpCall& call) {
  const Array& x = *call.inputs[0];
  const Line line(call.attributes, x.shape);
  Array y(line.out);
  for (size_t o = 0; o < line.outer; ++o)
    for (size_t i = 0; i < line.inner; ++i) {
      size_t best = 0;
      const auto at = [&](size_t k) { return x.data[(o * line.size + k) * line.inner + i]; };
      for (size_t k = 1; k < line.size && !std::isnan(at(best)); ++k)
        if (at(k) > at(best) || std::isnan(at(k))) best = k;
      y.data[o * line.inner + i] = static_cast<double>(best);
    }
  return y;
}

const Register<OpRecord> registered{{
    .name = "argmax",
    .function = "torch.argmax",
    .mase_type = "builtin_func",
    .summary = "where the largest value is",
    .attributes = {{integer_field("dim", "the dimension"),
                    boolean_field("keepdim", "keep the dimension with size 1", false)}},
    .element = ElementRule::integer,
    .infer = [](const Value& attributes,
                const std::vector<Shape>& inputs) { return Line(attributes, inputs[0]).out; },
    .eval = eval,
    .grad =
        [](const OpCall& call, const Array&, const Array&) {
          return OpGradients{{Array(call.inputs[0]->shape)}};  // a number has no gradient
        },
    .cost =
        [](const Value&, const std::vector<Shape>& inputs, const Shape&) {
          return OpCost{0, element_count(inputs[0])};
        },
    .lower =
        [](Lowering& to, const Value& attributes, const std::vector<Slot>& inputs) {
          const Shape shape = to.shape(inputs[0]);
          if (attributes["dim"].is_null() || shape.empty()) return -1;
          const int64_t dim = checked_dim(attributes["dim"].as_int(), shape.size());
          return to.reshape(to.primitive("argmax", Dict{{"dim", dim}}, inputs),
                            Line(attributes, shape).out);
        },
}};

}  // namespace
}  // namespace mase::argmax_op
