// SPDX-License-Identifier: Apache-2.0
// add: a + b, element by element, with broadcasting.
#include "mase/ops/elementwise.h"

namespace mase::add_op {
namespace {

const Register<OpRecord> registered{elementwise_pair(
    {.name = "add", .function = "operator.add", .mase_type = "builtin_func", .summary = "a + b"},
    [](const Expr& a, const Expr& b) { return a + b; })};

}  // namespace
}  // namespace mase::add_op
