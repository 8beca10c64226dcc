// SPDX-License-Identifier: Apache-2.0
// ge: 1 where a >= b, else 0.
#include "mase/ops/comparison.h"
#include "mase/ops/elementwise.h"

namespace mase::ge_op {
namespace {

const Register<OpRecord> registered{elementwise_pair(
    {.name = "ge",
     .function = "operator.ge",
     .mase_type = "builtin_func",
     .summary = "1 where a >= b, else 0",
     .element = ElementRule::boolean},
    [](const Expr& a, const Expr& b) -> Expr { return max(less(b, a), equal(a, b)); })};

}  // namespace
}  // namespace mase::ge_op
