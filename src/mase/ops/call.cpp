// SPDX-License-Identifier: Apache-2.0
#include "mase/ops/call.h"

namespace mase {

std::vector<Shape> shapes_of(const OpCall& call) {
  std::vector<Shape> shapes;
  for (const Array* input : call.inputs) shapes.push_back(input->shape);
  return shapes;
}

const Array* param_of(const OpCall& call, const std::string& name) {
  const auto found = call.params.find(name);
  return found == call.params.end() ? nullptr : found->second;
}

const Array* param_of(const OpCall& call, const std::string& name, size_t input) {
  if (call.inputs.size() > 1) return input < call.inputs.size() ? call.inputs[input] : nullptr;
  return param_of(call, name);
}

OpGradients layer_gradients(const OpCall& call, Array input, Array weight, Array bias) {
  OpGradients result{{std::move(input)}, {}};
  const auto add = [&](const char* name, size_t place, Array& gradient) {
    if (!param_of(call, name, place)) return;
    if (call.inputs.size() > 1)
      result.inputs.push_back(std::move(gradient));
    else
      result.params[name] = std::move(gradient);
  };
  add("weight", 1, weight);
  add("bias", 2, bias);
  return result;
}

std::vector<ParamSpec> table_of_rows(const Value& attributes) {
  return {{.name = "weight",
           .shape = {attributes["num_embeddings"].as_int(), attributes["embedding_dim"].as_int()},
           .normal_deviation = 1}};
}

}  // namespace mase
