// SPDX-License-Identifier: Apache-2.0
// mul: a * b, element by element, with broadcasting.
#include "mase/ops/elementwise.h"

namespace mase::mul_op {
namespace {

const Register<OpRecord> registered{elementwise_pair(
    {.name = "mul", .function = "operator.mul", .mase_type = "builtin_func", .summary = "a * b"},
    [](const Expr& a, const Expr& b) { return a * b; })};

}  // namespace
}  // namespace mase::mul_op
