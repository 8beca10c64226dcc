// SPDX-License-Identifier: Apache-2.0
// cumsum: the sum of all values up to each one along a dimension.
#include "mase/base/fields.h"
#include "mase/ops/dimensions.h"

namespace mase::cumsum_op {
namespace {

Array sums(const Value& attributes, const Array& x, bool backwards) {
  Array y = x;
  if (x.shape.empty()) return y;
  const auto dim = static_cast<size_t>(checked_dim(attributes["dim"].as_int(), x.shape.size()));
  size_t outer = 1, inner = 1;
  for (size_t i = 0; i < dim; ++i) outer *= static_cast<size_t>(x.shape[i]);
  for (size_t i = dim + 1; i < x.shape.size(); ++i) inner *= static_cast<size_t>(x.shape[i]);
  const auto size = static_cast<size_t>(x.shape[dim]);
  for (size_t o = 0; o < outer; ++o)
    for (size_t i = 0; i < inner; ++i)
      for (size_t k = 1; k < size; ++k) {
        const size_t here = backwards ? size - 1 - k : k, before = backwards ? here + 1 : k - 1;
        y.data[(o * size + here) * inner + i] += y.data[(o * size + before) * inner + i];
      }
  return y;
}

const Register<OpRecord> registered{{
    .name = "cumsum",
    .function = "torch.cumsum",
    .mase_type = "builtin_func",
    .summary = "sums up to each value",
    .attributes = {{integer_field("dim", "the dimension", -1)}},
    .infer =
        [](const Value& attributes, const std::vector<Shape>& inputs) {
          checked_dim(attributes["dim"].as_int(), inputs[0].size());
          return inputs[0];
        },
    .eval = [](const OpCall& call) { return sums(call.attributes, *call.inputs[0], false); },
    .grad = [](const OpCall& call, const Array&,
               const Array& g) { return OpGradients{{sums(call.attributes, g, true)}}; },
    .cost =
        [](const Value&, const std::vector<Shape>&, const Shape& out) {
          return OpCost{0, element_count(out)};
        },
    .lower =
        [](Lowering& to, const Value& attributes, const std::vector<Slot>& inputs) {
          const size_t rank = to.shape(inputs[0]).size();
          if (rank == 0) return -1;
          return to.primitive("running_sum",
                              Dict{{"dim", checked_dim(attributes["dim"].as_int(), rank)}}, inputs);
        },
}};

}  // namespace
}  // namespace mase::cumsum_op
