// SPDX-License-Identifier: Apache-2.0
// cos: the cosine.
#include "mase/ops/elementwise.h"

namespace mase::cos_op {
namespace {

const Register<OpRecord> registered{elementwise({.name = "cos",
                                                 .function = "torch.cos",
                                                 .mase_type = "builtin_func",
                                                 .summary = "the cosine",
                                                 .element = ElementRule::real},
                                                [](const Value&) {
                                                  const Expr x = Expr::operand(0);
                                                  return cos(x);
                                                })};

}  // namespace
}  // namespace mase::cos_op
