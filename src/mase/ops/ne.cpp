// SPDX-License-Identifier: Apache-2.0
// ne: 1 where a and b differ, else 0.
#include "mase/ops/comparison.h"
#include "mase/ops/elementwise.h"

namespace mase::ne_op {
namespace {

const Register<OpRecord> registered{
    elementwise_pair({.name = "ne",
                      .function = "operator.ne",
                      .mase_type = "builtin_func",
                      .summary = "1 where a and b differ, else 0",
                      .element = ElementRule::boolean},
                     [](const Expr& a, const Expr& b) -> Expr { return 1.0 - equal(a, b); })};

}  // namespace
}  // namespace mase::ne_op
