// SPDX-License-Identifier: Apache-2.0
// trunc: the whole number towards zero.
#include "mase/ops/elementwise.h"

namespace mase::trunc_op {
namespace {

const Register<OpRecord> registered{elementwise({.name = "trunc",
                                                 .function = "torch.trunc",
                                                 .mase_type = "builtin_func",
                                                 .summary = "the whole number towards zero"},
                                                [](const Value&) {
                                                  const Expr x = Expr::operand(0);
                                                  return select(less(x, 0.0), -floor(-x), floor(x));
                                                })};

}  // namespace
}  // namespace mase::trunc_op
