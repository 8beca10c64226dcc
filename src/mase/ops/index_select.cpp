// SPDX-License-Identifier: Apache-2.0
// index_select: entries of one dimension by number, in any order and as often as named.
#include <cmath>

#include "mase/ops/along.h"

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

// visit(place in x, place in the result)
template <class Visit>
void each(const OpCall& call, const Visit& visit) {
  const Along along(call.inputs[0]->shape, call.attributes["dim"].as_int());
  const std::vector<double>& index = call.inputs[1]->data;
  for (const double number : index)
    if (!(number >= 0 && number < static_cast<double>(along.size)) || number != std::floor(number))
      throw Error("", fmt::format("number {} for a dimension of {}", number, along.size),
                  "numbers go from 0 to the size less 1");
  size_t to = 0;
  for (size_t o = 0; o < along.outer; ++o)
    for (const double number : index)
      for (size_t i = 0; i < along.inner; ++i, ++to)
        visit(along.place(o, static_cast<size_t>(number), i), to);
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
    .name = "index_select",
    .function = "torch.index_select",
    .mase_type = "builtin_func",
    .summary = "entries of a dimension by number",
    .attributes = {{{.name = "dim",
                     .type = FieldType::integer,
                     .default_value = 0,
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
          return to.primitive("pick", Dict{{"dim", dim}}, inputs);
        },
}};

}  // namespace
}  // namespace mase::index_select_op
