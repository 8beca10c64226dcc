// SPDX-License-Identifier: Apache-2.0
// sub: a - b, element by element, with broadcasting.
#include "mase/ops/elementwise.h"

namespace mase::sub_op {
namespace {

const Register<OpRecord> registered{elementwise_pair(
    {.name = "sub", .function = "operator.sub", .mase_type = "builtin_func", .summary = "a - b"},
    [](const Expr& a, const Expr& b) { return a - b; })};

}  // namespace
}  // namespace mase::sub_op
