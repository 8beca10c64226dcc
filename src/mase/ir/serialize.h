// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "mase/ir/graph.h"

namespace mase {

// The tensor of this name in the state dict, of the shape and type that the description claims;
// whoever gives it checks the claim before anything is allocated.
using TensorSource =
    std::function<Tensor(const std::string& tensor_name, const Shape& shape, DType dtype)>;

// graph_from_value (graph.h) with the tensors of parameters and buffers; masks are zeros there.
Graph graph_from_value(const Value& value, const TensorSource& tensors);

}  // namespace mase
