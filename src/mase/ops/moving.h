// SPDX-License-Identifier: Apache-2.0
// Ops whose result is elements of their first input, each any number of times: value and gradient
// follow from where each comes from. Further inputs are numbers and have no gradient.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mase/ir/op.h"

namespace mase {

// The place in the first input of each element of the result.
using SourcesOf = std::function<std::vector<size_t>(const OpCall& call)>;

// Fills in eval and grad.
OpRecord moving(OpRecord record, const SourcesOf& sources);

// What the second input's numbers say along the dimension `dim`; as this primitive of the engine.
OpRecord by_number(OpRecord record, const SourcesOf& sources, const std::string& primitive);

// The dimensions in another order: fills in infer and lower too.
using OrderOf = std::vector<int64_t> (*)(const Value& attributes, size_t rank);
OpRecord permuting(OpRecord record, OrderOf order);

}  // namespace mase
