// SPDX-License-Identifier: Apache-2.0
// lt: 1 where a < b, else 0.
#include "mase/ops/comparison.h"
#include "mase/ops/elementwise.h"

namespace mase::lt_op {
namespace {

const Register<OpRecord> registered{
    elementwise_pair({.name = "lt",
                      .function = "operator.lt",
                      .mase_type = "builtin_func",
                      .summary = "1 where a < b, else 0",
                      .element = ElementRule::boolean},
                     [](const Expr& a, const Expr& b) -> Expr { return less(a, b); })};

}  // namespace
}  // namespace mase::lt_op
