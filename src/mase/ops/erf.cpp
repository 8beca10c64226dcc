// SPDX-License-Identifier: Apache-2.0
// erf: error function.
#include "mase/ops/elementwise.h"

namespace mase::erf_op {
namespace {

const Register<OpRecord> registered{elementwise({.name = "erf",
                                                 .function = "torch.erf",
                                                 .mase_type = "builtin_func",
                                                 .summary = "error function",
                                                 .element = ElementRule::real},
                                                [](const Value&) {
                                                  const Expr x = Expr::operand(0);
                                                  return erf(x);
                                                })};

}  // namespace
}  // namespace mase::erf_op
