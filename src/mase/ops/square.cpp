// SPDX-License-Identifier: Apache-2.0
// square: x times x.
#include "mase/ops/elementwise.h"

namespace mase::square_op {
namespace {

const Register<OpRecord> registered{elementwise({.name = "square",
                                                 .function = "torch.square",
                                                 .mase_type = "builtin_func",
                                                 .summary = "x times x"},
                                                [](const Value&) {
                                                  const Expr x = Expr::operand(0);
                                                  return x * x;
                                                })};

}  // namespace
}  // namespace mase::square_op
