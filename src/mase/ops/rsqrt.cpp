// SPDX-License-Identifier: Apache-2.0
// rsqrt: 1 over the square root.
#include "mase/ops/elementwise.h"

namespace mase::rsqrt_op {
namespace {

const Register<OpRecord> registered{elementwise({.name = "rsqrt",
                                                 .function = "torch.rsqrt",
                                                 .mase_type = "builtin_func",
                                                 .summary = "1 over the square root",
                                                 .element = ElementRule::real},
                                                [](const Value&) {
                                                  const Expr x = Expr::operand(0);
                                                  return 1.0 / sqrt(x);
                                                })};

}  // namespace
}  // namespace mase::rsqrt_op
