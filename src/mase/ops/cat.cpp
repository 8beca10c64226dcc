// SPDX-License-Identifier: Apache-2.0
// cat: several tensors after each other along one dimension.
#include "mase/base/fields.h"
#include "mase/ops/call.h"
#include "mase/ops/dimensions.h"

namespace mase::cat_op {
namespace {

Shape infer(const Value& attributes, const std::vector<Shape>& inputs) {
  Shape out = inputs.at(0);
  if (out.empty()) throw Error("", "cat wants tensors of rank 1 or more");
  const auto dim = static_cast<size_t>(checked_dim(attributes["dim"].as_int(), out.size()));
  for (size_t i = 1; i < inputs.size(); ++i) {
    Shape rest = inputs[i];
    if (rest.size() == out.size()) rest[dim] = out[dim];
    if (rest != out)
      throw Error("", fmt::format("shapes {} and {} differ outside dimension {}",
                                  shape_text(inputs[0]), shape_text(inputs[i]), dim));
    out[dim] += inputs[i][dim];
  }
  return out;
}

// visit(input, place in the input, place in the result) for each element.
template <class Visit>
void each(const OpCall& call, const Visit& visit) {
  const std::vector<Shape> shapes = shapes_of(call);
  const Shape out = infer(call.attributes, shapes);
  const auto dim = static_cast<size_t>(checked_dim(call.attributes["dim"].as_int(), out.size()));
  size_t outer = 1, inner = 1;
  for (size_t i = 0; i < dim; ++i) outer *= static_cast<size_t>(out[i]);
  for (size_t i = dim + 1; i < out.size(); ++i) inner *= static_cast<size_t>(out[i]);
  size_t place = 0;
  for (size_t o = 0; o < outer; ++o)
    for (size_t k = 0; k < shapes.size(); ++k) {
      const size_t run = static_cast<size_t>(shapes[k][dim]) * inner;
      for (size_t i = 0; i < run; ++i) visit(k, o * run + i, place++);
    }
}

Array eval(const OpCall& call) {
  Array out(infer(call.attributes, shapes_of(call)));
  each(call, [&](size_t k, size_t from, size_t to) { out.data[to] = call.inputs[k]->data[from]; });
  return out;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  OpGradients result;
  for (const Array* input : call.inputs) result.inputs.emplace_back(input->shape);
  each(call, [&](size_t k, size_t to, size_t from) { result.inputs[k].data[to] = g.data[from]; });
  return result;
}

Slot lower(Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs) {
  return lowering.concat(inputs,
                         checked_dim(attributes["dim"].as_int(), lowering.shape(inputs[0]).size()));
}

const Register<OpRecord> registered{{
    .name = "cat",
    .aliases = {"concat"},
    .function = "torch.cat",
    .mase_type = "implicit_func",
    .summary = "tensors after each other along a dimension",
    .attributes = {{integer_field("dim", "the dimension", 0)}},
    .max_inputs = -1,
    .infer = infer,
    .eval = eval,
    .grad = grad,
    .lower = lower,
}};

}  // namespace
}  // namespace mase::cat_op
