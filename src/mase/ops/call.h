// SPDX-License-Identifier: Apache-2.0
// What ops ask of the call they evaluate.
#pragma once

#include <string>
#include <vector>

#include "mase/ir/op.h"

namespace mase {

std::vector<Shape> shapes_of(const OpCall& call);                    // of its inputs
const Array* param_of(const OpCall& call, const std::string& name);  // null: it has none
// A parameter that is this input where the layer is called as a function.
const Array* param_of(const OpCall& call, const std::string& name, size_t input);

// The gradients of a layer's input and of its weight and bias, where it has them: parameters, or
// further inputs of a function.
OpGradients layer_gradients(const OpCall& call, Array input, Array weight, Array bias = {});

// The parameter of layers that look rows up: num_embeddings of embedding_dim numbers.
std::vector<ParamSpec> table_of_rows(const Value& attributes);

}  // namespace mase
