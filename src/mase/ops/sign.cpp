// SPDX-License-Identifier: Apache-2.0
// sign: -1, 0 or 1; 0 for NaN, as PyTorch.
#include "mase/ops/elementwise.h"

namespace mase::sign_op {
namespace {

const Register<OpRecord> registered{elementwise({.name = "sign",
                                                 .function = "torch.sign",
                                                 .mase_type = "builtin_func",
                                                 .summary = "-1, 0 or 1"},
                                                [](const Value&) {
                                                  const Expr x = Expr::operand(0);
                                                  return less(0.0, x) - less(x, 0.0);
                                                })};

}  // namespace
}  // namespace mase::sign_op
