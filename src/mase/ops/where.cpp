// SPDX-License-Identifier: Apache-2.0
// where: the second operand where the first is not 0, else the third.
#include "mase/ops/elementwise.h"

namespace mase::where_op {
namespace {

const Register<OpRecord> registered{elementwise(
    {.name = "where",
     .function = "torch.where",
     .mase_type = "builtin_func",
     .summary = "one of two operands, by a third",
     .min_inputs = 3,
     .max_inputs = 3},
    [](const Value&) { return select(Expr::operand(0), Expr::operand(1), Expr::operand(2)); })};

}  // namespace
}  // namespace mase::where_op
