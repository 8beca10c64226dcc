// SPDX-License-Identifier: Apache-2.0
// Softmax in the words of the lowering, for the op of that name and for attention.
#pragma once

#include "mase/ir/lowering.h"

namespace mase {

// Along one dimension. With a number format for `exponentials` these are rounded before they are
// summed up; without one it is the softmax that the engine has.
inline Slot softmax_by_exponentials(Lowering& lowering, Slot x, int64_t dim, bool logarithm) {
  if (logarithm || lowering.rounded(x, "exponentials") == x)
    return lowering.softmax(x, dim, logarithm);
  const Expr a = Expr::operand(0), b = Expr::operand(1);
  const Slot most = lowering.reduce(ReduceKind::max, x, {dim}, true);
  const Slot exponentials = lowering.rounded(lowering.map(exp(a - b), {x, most}), "exponentials");
  const Slot sum = lowering.reduce(ReduceKind::sum, exponentials, {dim}, true);
  return lowering.map(a / b, {exponentials, sum});
}

}  // namespace mase
