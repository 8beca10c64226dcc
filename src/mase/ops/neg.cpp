// SPDX-License-Identifier: Apache-2.0
// neg: -x.
#include "mase/ops/elementwise.h"

namespace mase::neg_op {
namespace {

const Register<OpRecord> registered{elementwise(
    {.name = "neg", .function = "operator.neg", .mase_type = "implicit_func", .summary = "-x"},
    [](const Value&) { return -Expr::operand(0); })};

}  // namespace
}  // namespace mase::neg_op
