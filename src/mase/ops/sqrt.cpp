// SPDX-License-Identifier: Apache-2.0
// sqrt: square root.
#include "mase/ops/elementwise.h"

namespace mase::sqrt_op {
namespace {

const Register<OpRecord> registered{elementwise({.name = "sqrt",
                                                 .function = "torch.sqrt",
                                                 .mase_type = "builtin_func",
                                                 .summary = "square root",
                                                 .element = ElementRule::real},
                                                [](const Value&) {
                                                  const Expr x = Expr::operand(0);
                                                  return sqrt(x);
                                                })};

}  // namespace
}  // namespace mase::sqrt_op
