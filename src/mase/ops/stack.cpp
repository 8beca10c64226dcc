// SPDX-License-Identifier: Apache-2.0
// stack: tensors of one shape along a new dimension.
#include "mase/base/fields.h"
#include "mase/ops/call.h"
#include "mase/ops/dimensions.h"

namespace mase::stack_op {
namespace {

struct Stack {
  size_t dim, outer = 1, inner = 1;
  Shape out;

  Stack(const Value& attributes, const std::vector<Shape>& inputs) {
    if (inputs.empty()) throw Error("", "stack wants at least one tensor");
    for (const Shape& shape : inputs)
      if (shape != inputs[0])
        throw Error(
            "", fmt::format("shapes {} and {} differ", shape_text(inputs[0]), shape_text(shape)));
    out = inputs[0];
    dim = static_cast<size_t>(checked_dim(attributes["dim"].as_int(), out.size() + 1));
    for (size_t i = 0; i < out.size(); ++i)
      (i < dim ? outer : inner) *= static_cast<size_t>(out[i]);
    out.insert(out.begin() + static_cast<std::ptrdiff_t>(dim), static_cast<int64_t>(inputs.size()));
  }
  size_t place(size_t part, size_t parts, size_t o, size_t i) const {
    return (o * parts + part) * inner + i;
  }
};

Array eval(const OpCall& call) {
  const Stack stack(call.attributes, shapes_of(call));
  Array y(stack.out);
  for (size_t k = 0; k < call.inputs.size(); ++k)
    for (size_t o = 0; o < stack.outer; ++o)
      for (size_t i = 0; i < stack.inner; ++i)
        y.data[stack.place(k, call.inputs.size(), o, i)] =
            call.inputs[k]->data[o * stack.inner + i];
  return y;
}

OpGradients grad(const OpCall& call, const Array&, const Array& g) {
  const Stack stack(call.attributes, shapes_of(call));
  OpGradients result;
  for (size_t k = 0; k < call.inputs.size(); ++k) {
    Array part(call.inputs[k]->shape);
    for (size_t o = 0; o < stack.outer; ++o)
      for (size_t i = 0; i < stack.inner; ++i)
        part.data[o * stack.inner + i] = g.data[stack.place(k, call.inputs.size(), o, i)];
    result.inputs.push_back(std::move(part));
  }
  return result;
}

Slot lower(Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs) {
  const int64_t dim = checked_dim(attributes["dim"].as_int(), lowering.shape(inputs[0]).size() + 1);
  std::vector<Slot> parts;
  for (const Slot input : inputs) {
    Shape shape = lowering.shape(input);
    shape.insert(shape.begin() + dim, 1);
    parts.push_back(lowering.reshape(input, shape));
  }
  return lowering.concat(parts, dim);
}

const Register<OpRecord> registered{{
    .name = "stack",
    .function = "torch.stack",
    .mase_type = "implicit_func",
    .summary = "tensors along a new dimension",
    .attributes = {{integer_field("dim", "where the new one stands", 0)}},
    .max_inputs = -1,
    .infer = [](const Value& attributes,
                const std::vector<Shape>& inputs) { return Stack(attributes, inputs).out; },
    .eval = eval,
    .grad = grad,
    .lower = lower,
}};

}  // namespace
}  // namespace mase::stack_op
