// SPDX-License-Identifier: Apache-2.0
// le: 1 where a <= b, else 0.
#include "mase/ops/comparison.h"
#include "mase/ops/elementwise.h"

namespace mase::le_op {
namespace {

const Register<OpRecord> registered{elementwise_pair(
    {.name = "le",
     .function = "operator.le",
     .mase_type = "builtin_func",
     .summary = "1 where a <= b, else 0",
     .element = ElementRule::boolean},
    [](const Expr& a, const Expr& b) -> Expr { return max(less(a, b), equal(a, b)); })};

}  // namespace
}  // namespace mase::le_op
