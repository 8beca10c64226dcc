// SPDX-License-Identifier: Apache-2.0
// What the ops have in common that keep the elements and change the shape: all but the shape
// itself, which their `infer` gives.
#pragma once

#include "mase/ir/lowering.h"
#include "mase/ir/op.h"

namespace mase {

using InferShape = Shape(const Value& attributes, const std::vector<Shape>& inputs);

template <InferShape infer>
Array eval_reshaping(const OpCall& call) {
  Array y = *call.inputs[0];
  y.shape = infer(call.attributes, {y.shape});
  return y;
}

inline OpGradients grad_reshaping(const OpCall& call, const Array&, const Array& g) {
  OpGradients result;
  result.inputs.push_back(g);
  result.inputs[0].shape = call.inputs[0]->shape;
  return result;
}

template <InferShape infer>
Slot lower_reshaping(Lowering& lowering, const Value& attributes, const std::vector<Slot>& inputs) {
  return lowering.reshape(inputs[0], infer(attributes, {lowering.shape(inputs[0])}));
}

}  // namespace mase
