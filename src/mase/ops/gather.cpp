// SPDX-License-Identifier: Apache-2.0
// gather: y[i][j][k] = x[i][index[i][j][k]][k], and so along any dimension.
#include <cmath>

#include "mase/ops/along.h"

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

// visit(place in x, place in the result)
template <class Visit>
void each(const OpCall& call, const Visit& visit) {
  const Shape& x = call.inputs[0]->shape;
  const Array& index = *call.inputs[1];
  const auto dim = static_cast<size_t>(checked_dim(call.attributes["dim"].as_int(), x.size()));
  std::vector<int64_t> position(x.size(), 0);
  for (size_t to = 0; to < index.data.size(); ++to) {
    const double number = index.data[to];
    const int64_t size = x.empty() ? 1 : x[dim];
    if (!(number >= 0 && number < static_cast<double>(size)) || number != std::floor(number))
      throw Error("", fmt::format("number {} for a dimension of {}", number, size),
                  "numbers go from 0 to the size less 1");
    int64_t from = 0;
    for (size_t i = 0; i < x.size(); ++i)
      from = from * x[i] + (i == dim ? static_cast<int64_t>(number) : position[i]);
    visit(static_cast<size_t>(from), to);
    for (size_t i = x.size(); i-- > 0;) {
      if (++position[i] < index.shape[i]) break;
      position[i] = 0;
    }
  }
}

Array eval(const OpCall& call) {
  Array y(infer(call.attributes, {call.inputs[0]->shape, call.inputs[1]->shape}));
  each(call, [&](size_t from, size_t to) { y.data[to] = call.inputs[0]->data[from]; });
  return y;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  OpGradients result;
  result.inputs.emplace_back(call.inputs[0]->shape);
  result.inputs.emplace_back(call.inputs[1]->shape);  // numbers have no gradient
  each(call, [&](size_t to, size_t from) { result.inputs[0].data[to] += g.data[from]; });
  return result;
}

const Register<OpRecord> registered{{
    .name = "gather",
    .function = "torch.gather",
    .mase_type = "builtin_func",
    .summary = "values along a dimension by number",
    .attributes = {{{.name = "dim",
                     .type = FieldType::integer,
                     .default_value = -1,
                     .help = "the dimension"}}},
    .min_inputs = 2,
    .max_inputs = 2,
    .index_inputs = {1},
    .infer = infer,
    .eval = eval,
    .grad = grad,
    .cost = [](const Value&, const std::vector<Shape>&, const Shape&) { return OpCost{}; },
    .lower =
        [](Lowering& to, const Value& attributes, const std::vector<Slot>& inputs) {
          const int64_t dim = checked_dim(attributes["dim"].as_int(), to.shape(inputs[0]).size());
          return to.primitive("gather_rows", Dict{{"dim", dim}}, inputs);
        },
}};

}  // namespace
}  // namespace mase::gather_op
