// SPDX-License-Identifier: Apache-2.0
// minimum: the smaller of two.
#include "mase/ops/elementwise.h"

namespace mase::minimum_op {
namespace {

const Register<OpRecord> registered{
    elementwise_pair({.name = "minimum",
                      .function = "torch.minimum",
                      .mase_type = "builtin_func",
                      .summary = "the smaller of two"},
                     [](const Expr& a, const Expr& b) -> Expr { return min(a, b); })};

}  // namespace
}  // namespace mase::minimum_op
