// SPDX-License-Identifier: Apache-2.0
// abs: absolute value.
#include "mase/ops/elementwise.h"

namespace mase::abs_op {
namespace {

const Register<OpRecord> registered{elementwise({.name = "abs",
                                                 .function = "torch.abs",
                                                 .mase_type = "builtin_func",
                                                 .summary = "absolute value"},
                                                [](const Value&) {
                                                  const Expr x = Expr::operand(0);
                                                  return abs(x);
                                                })};

}  // namespace
}  // namespace mase::abs_op
