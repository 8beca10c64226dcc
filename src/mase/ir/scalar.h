// SPDX-License-Identifier: Apache-2.0
// What each scalar operation means, in double precision: the one definition that expressions are
// evaluated by and the engine's kernels are compared with.
#pragma once

#include "mase/ir/expr.h"

namespace mase {

// Operations of fewer operands ignore the others. Leaves have no value of their own.
double scalar_result(ScalarOp op, double a, double b, double c);

}  // namespace mase
