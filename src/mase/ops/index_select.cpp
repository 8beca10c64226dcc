// SPDX-License-Identifier: Apache-2.0
// index_select: entries of one dimension by number, in any order and as often as named.
#include "mase/base/fields.h"
#include "mase/ops/along.h"
#include "mase/ops/moving.h"

namespace mase::index_select_op {
namespace {

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  const Shape &x = inputs[0], &index = inputs[1];
  if (x.empty() || index.size() != 1)
    throw Error(
        "", fmt::format("index_select takes numbers {} from {}", shape_text(index), shape_text(x)),
        "the numbers are a list, the tensor has a dimension");
  Shape y = x;
  y[static_cast<size_t>(checked_dim(attributes["dim"].as_int(), x.size()))] = index[0];
  return y;
}

std::vector<size_t> sources(const OpCall& call) {
  const Along along(call.inputs[0]->shape, call.attributes["dim"].as_int());
  std::vector<size_t> places;
  for (size_t o = 0; o < along.outer; ++o)
    for (const double number : call.inputs[1]->data) {
      const size_t k = checked_index(number, static_cast<int64_t>(along.size));
      for (size_t i = 0; i < along.inner; ++i) places.push_back(along.place(o, k, i));
    }
  return places;
}

const Register<OpRecord> registered{by_number(
    {
        .name = "index_select",
        .function = "torch.index_select",
        .summary = "entries of a dimension by number",
        .attributes = {{integer_field("dim", "the dimension", 0)}},
        .infer = infer,
    },
    sources, "pick")};

}  // namespace
}  // namespace mase::index_select_op
