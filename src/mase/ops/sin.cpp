// SPDX-License-Identifier: Apache-2.0
// sin: the sine.
#include "mase/ops/elementwise.h"

namespace mase::sin_op {
namespace {

const Register<OpRecord> registered{elementwise({.name = "sin",
                                                 .function = "torch.sin",
                                                 .mase_type = "builtin_func",
                                                 .summary = "the sine",
                                                 .element = ElementRule::real},
                                                [](const Value&) {
                                                  const Expr x = Expr::operand(0);
                                                  return sin(x);
                                                })};

}  // namespace
}  // namespace mase::sin_op
