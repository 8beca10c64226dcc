// SPDX-License-Identifier: Apache-2.0
// Element-wise ops that scalar expressions (ir/expr.h) have no word for: from a function and its
// derivative. The engine calls their reference value.
#pragma once

#include "mase/ir/op.h"

namespace mase {

// Fills in infer, eval, grad and cost of an op of one input.
OpRecord pointwise(OpRecord record, double (*value)(double), double (*slope)(double));

}  // namespace mase
