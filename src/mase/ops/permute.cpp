// SPDX-License-Identifier: Apache-2.0
// permute: the dimensions in another order.
#include <algorithm>
#include <numeric>

#include "mase/ops/dimensions.h"

namespace mase::permute_op {
namespace {

std::vector<int64_t> order_of(const Value& attributes, size_t rank) {
  std::vector<int64_t> order = attributes["dims"].as_int_list("dims");
  for (int64_t& dim : order) dim = checked_dim(dim, rank);
  std::vector<int64_t> sorted = order, all(rank);
  std::sort(sorted.begin(), sorted.end());
  std::iota(all.begin(), all.end(), 0);
  if (sorted != all)
    throw Error("", fmt::format("[{}] is no order of {} dimensions", fmt::join(order, ", "), rank),
                "name every dimension once");
  return order;
}

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  Shape out;
  for (const int64_t dim : order_of(attributes, inputs[0].size()))
    out.push_back(inputs[0][static_cast<size_t>(dim)]);
  return out;
}

// visit(place in x, place in y) for each element.
template <class Visit>
void each(const Value& attributes, const Shape& x, const Visit& visit) {
  const std::vector<int64_t> order = order_of(attributes, x.size());
  const Shape y = infer(attributes, {x});
  std::vector<size_t> strides(x.size(), 1);
  for (size_t d = x.size(); d-- > 1;) strides[d - 1] = strides[d] * static_cast<size_t>(x[d]);
  const auto count = static_cast<size_t>(element_count(y));
  for (size_t i = 0; i < count; ++i) {
    size_t rest = i, place = 0;
    for (size_t d = y.size(); d-- > 0;) {
      const auto size = static_cast<size_t>(y[d]);
      place += rest % size * strides[static_cast<size_t>(order[d])];
      rest /= size;
    }
    visit(place, i);
  }
}

Array eval(const OpCall& call) {
  const Array& x = *call.inputs[0];
  Array y(infer(call.attributes, {x.shape}));
  each(call.attributes, x.shape, [&](size_t from, size_t to) { y.data[to] = x.data[from]; });
  return y;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  OpGradients result;
  result.inputs.emplace_back(call.inputs[0]->shape);
  each(call.attributes, call.inputs[0]->shape,
       [&](size_t to, size_t from) { result.inputs[0].data[to] = g.data[from]; });
  return result;
}

const Register<OpRecord> registered{{
    .name = "permute",
    .function = "torch.permute",
    .mase_type = "implicit_func",
    .summary = "the dimensions in another order",
    .attributes =
        {{{.name = "dims", .type = FieldType::list, .help = "the order", .required = true}}},
    .infer = infer,
    .eval = eval,
    .grad = grad,
    .cost = [](const Value&, const std::vector<Shape>&, const Shape&) { return OpCost{}; },
    .lower =
        [](Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs) {
          return lowering.permute(inputs[0],
                                  order_of(attributes, lowering.shape(inputs[0]).size()));
        },
    .complete =
        [](Dict& attributes, const std::vector<Shape>& inputs, int64_t) {
          if (attributes.contains("dims")) return;
          List dims;
          for (size_t i = inputs[0].size(); i-- > 0;) dims.push_back(static_cast<int64_t>(i));
          attributes.set("dims", std::move(dims));
        },
}};

}  // namespace
}  // namespace mase::permute_op
