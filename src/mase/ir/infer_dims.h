// SPDX-License-Identifier: Apache-2.0
// Shapes with a symbol for the batch through one op, for those who build a graph.
#pragma once

#include <optional>
#include <vector>

#include "mase/ir/op.h"
#include "mase/ir/value_type.h"

namespace mase {

// The shape of the op's result from those of its inputs; nothing if a size is no sum of multiples
// of the batch and a number (value_type.h). Throws what the op has to say where shapes do not fit.
std::optional<std::vector<Dim>> infer_dims(const OpRecord& op, const Value& attributes,
                                           const std::vector<std::vector<Dim>>& inputs);

}  // namespace mase
