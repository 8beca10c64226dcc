// SPDX-License-Identifier: Apache-2.0
// transpose: two dimensions change places.
#include <numeric>

#include "mase/ops/dimensions.h"

namespace mase::transpose_op {
namespace {

struct Pair {
  size_t first, second;
  Pair(const Value& attributes, size_t rank)
      : first(static_cast<size_t>(checked_dim(attributes["dim0"].as_int(), rank))),
        second(static_cast<size_t>(checked_dim(attributes["dim1"].as_int(), rank))) {}
};

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  Shape out = inputs[0];
  const Pair pair(attributes, out.size());
  if (!out.empty()) std::swap(out[pair.first], out[pair.second]);
  return out;
}

Array swapped(const Array& x, const Value& attributes) {
  const Pair pair(attributes, x.shape.size());
  Array y(infer(attributes, {x.shape}));
  std::vector<size_t> strides(x.shape.size());
  size_t stride = 1;
  for (size_t d = x.shape.size(); d-- > 0;) {
    strides[d] = stride;
    stride *= static_cast<size_t>(x.shape[d]);
  }
  if (!strides.empty()) std::swap(strides[pair.first], strides[pair.second]);
  for (size_t i = 0; i < y.data.size(); ++i) {
    size_t rest = i, place = 0;
    for (size_t d = y.shape.size(); d-- > 0;) {
      const auto size = static_cast<size_t>(y.shape[d]);
      place += rest % size * strides[d];
      rest /= size;
    }
    y.data[i] = x.data[place];
  }
  return y;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  OpGradients result;
  result.inputs.push_back(swapped(g, call.attributes));
  return result;
}

Slot lower(Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs) {
  std::vector<int64_t> order(lowering.shape(inputs[0]).size());
  if (order.empty()) return inputs[0];
  std::iota(order.begin(), order.end(), 0);
  const Pair pair(attributes, order.size());
  std::swap(order[pair.first], order[pair.second]);
  return lowering.permute(inputs[0], order);
}

const Register<OpRecord> registered{{
    .name = "transpose",
    .function = "torch.transpose",
    .mase_type = "implicit_func",
    .summary = "two dimensions change places",
    .attributes = {{
        {.name = "dim0", .type = FieldType::integer, .help = "a dimension", .required = true},
        {.name = "dim1",
         .type = FieldType::integer,
         .help = "the other dimension",
         .required = true},
    }},
    .infer = infer,
    .eval = [](const OpCall& call) { return swapped(*call.inputs[0], call.attributes); },
    .grad = grad,
    .cost = [](const Value&, const std::vector<Shape>&, const Shape&) { return OpCost{}; },
    .lower = lower,
    .complete =
        [](Dict& attributes, const std::vector<Shape>&, int64_t) {
          if (!attributes.contains("dim0")) attributes.set("dim0", 0);
          if (!attributes.contains("dim1")) attributes.set("dim1", -1);
        },
}};

}  // namespace
}  // namespace mase::transpose_op
