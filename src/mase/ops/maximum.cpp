// SPDX-License-Identifier: Apache-2.0
// maximum: the larger of two.
#include "mase/ops/elementwise.h"

namespace mase::maximum_op {
namespace {

const Register<OpRecord> registered{
    elementwise_pair({.name = "maximum",
                      .function = "torch.maximum",
                      .mase_type = "builtin_func",
                      .summary = "the larger of two"},
                     [](const Expr& a, const Expr& b) -> Expr { return max(a, b); })};

}  // namespace
}  // namespace mase::maximum_op
