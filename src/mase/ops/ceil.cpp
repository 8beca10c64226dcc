// SPDX-License-Identifier: Apache-2.0
// ceil: the whole number at or above.
#include "mase/ops/elementwise.h"

namespace mase::ceil_op {
namespace {

const Register<OpRecord> registered{elementwise({.name = "ceil",
                                                 .function = "torch.ceil",
                                                 .mase_type = "builtin_func",
                                                 .summary = "the whole number at or above"},
                                                [](const Value&) {
                                                  const Expr x = Expr::operand(0);
                                                  return -floor(-x);
                                                })};

}  // namespace
}  // namespace mase::ceil_op
