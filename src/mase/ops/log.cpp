// SPDX-License-Identifier: Apache-2.0
// log: natural logarithm.
#include "mase/ops/elementwise.h"

namespace mase::log_op {
namespace {

const Register<OpRecord> registered{elementwise({.name = "log",
                                                 .function = "torch.log",
                                                 .mase_type = "builtin_func",
                                                 .summary = "natural logarithm",
                                                 .element = ElementRule::real},
                                                [](const Value&) {
                                                  const Expr x = Expr::operand(0);
                                                  return log(x);
                                                })};

}  // namespace
}  // namespace mase::log_op
