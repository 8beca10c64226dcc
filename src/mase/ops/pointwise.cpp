// SPDX-License-Identifier: Apache-2.0
#include "mase/ops/pointwise.h"

namespace mase {

OpRecord pointwise(OpRecord record, double (*value)(double), double (*slope)(double)) {
  record.mase_type = "builtin_func";
  record.infer = [](const Value&, const std::vector<Shape>& inputs) { return inputs[0]; };
  record.eval = [value](const OpCall& call) {
    Array y = *call.inputs[0];
    for (double& element : y.data) element = value(element);
    return y;
  };
  record.grad = [slope](const OpCall& call, const Array&, const Array& g) {
    OpGradients result;
    result.inputs.push_back(g);
    for (size_t i = 0; i < g.data.size(); ++i)
      result.inputs[0].data[i] *= slope(call.inputs[0]->data[i]);
    return result;
  };
  record.cost = [](const Value&, const std::vector<Shape>&, const Shape& out) {
    return OpCost{0, element_count(out)};
  };
  return record;
}

}  // namespace mase
