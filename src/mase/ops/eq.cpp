// SPDX-License-Identifier: Apache-2.0
// eq: 1 where a = b, else 0.
#include "mase/ops/comparison.h"
#include "mase/ops/elementwise.h"

namespace mase::eq_op {
namespace {

const Register<OpRecord> registered{
    elementwise_pair({.name = "eq",
                      .function = "operator.eq",
                      .mase_type = "builtin_func",
                      .summary = "1 where a = b, else 0",
                      .element = ElementRule::boolean},
                     [](const Expr& a, const Expr& b) -> Expr { return equal(a, b); })};

}  // namespace
}  // namespace mase::eq_op
