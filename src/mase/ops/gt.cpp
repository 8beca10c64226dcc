// SPDX-License-Identifier: Apache-2.0
// gt: 1 where a > b, else 0.
#include "mase/ops/comparison.h"
#include "mase/ops/elementwise.h"

namespace mase::gt_op {
namespace {

const Register<OpRecord> registered{
    elementwise_pair({.name = "gt",
                      .function = "operator.gt",
                      .mase_type = "builtin_func",
                      .summary = "1 where a > b, else 0",
                      .element = ElementRule::boolean},
                     [](const Expr& a, const Expr& b) -> Expr { return less(b, a); })};

}  // namespace
}  // namespace mase::gt_op
