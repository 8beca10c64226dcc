// SPDX-License-Identifier: Apache-2.0
// gather: y[i][j][k] = x[i][index[i][j][k]][k], and so along any dimension.
#include "mase/base/fields.h"
#include "mase/ops/along.h"
#include "mase/ops/moving.h"

namespace mase::gather_op {
namespace {

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  const Shape &x = inputs[0], &index = inputs[1];
  const int64_t dim = checked_dim(attributes["dim"].as_int(), x.size());
  bool fits = x.size() == index.size();
  for (size_t i = 0; fits && i < x.size(); ++i)
    fits = static_cast<int64_t>(i) == dim || index[i] <= x[i];
  if (!fits)
    throw Error("",
                fmt::format("gather takes numbers {} from {}", shape_text(index), shape_text(x)),
                "the numbers have the tensor's rank and no larger sizes but along the dimension");
  return index;
}

std::vector<size_t> sources(const OpCall& call) {
  const Shape& x = call.inputs[0]->shape;
  const Array& index = *call.inputs[1];
  const auto dim = static_cast<size_t>(checked_dim(call.attributes["dim"].as_int(), x.size()));
  std::vector<int64_t> position(x.size(), 0);
  std::vector<size_t> places;
  for (const double number : index.data) {
    checked_index(number, x.empty() ? 1 : x[dim]);
    int64_t from = 0;
    for (size_t i = 0; i < x.size(); ++i)
      from = from * x[i] + (i == dim ? static_cast<int64_t>(number) : position[i]);
    places.push_back(static_cast<size_t>(from));
    for (size_t i = x.size(); i-- > 0;) {
      if (++position[i] < index.shape[i]) break;
      position[i] = 0;
    }
  }
  return places;
}

const Register<OpRecord> registered{by_number(
    {
        .name = "gather",
        .function = "torch.gather",
        .summary = "values along a dimension by number",
        .attributes = {{integer_field("dim", "the dimension", -1)}},
        .infer = infer,
    },
    sources, "gather_rows")};

}  // namespace
}  // namespace mase::gather_op
