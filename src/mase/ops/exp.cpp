// SPDX-License-Identifier: Apache-2.0
// exp: e to the power of x.
#include "mase/ops/elementwise.h"

namespace mase::exp_op {
namespace {

const Register<OpRecord> registered{elementwise({.name = "exp",
                                                 .function = "torch.exp",
                                                 .mase_type = "builtin_func",
                                                 .summary = "e to the power of x",
                                                 .element = ElementRule::real},
                                                [](const Value&) {
                                                  const Expr x = Expr::operand(0);
                                                  return exp(x);
                                                })};

}  // namespace
}  // namespace mase::exp_op
