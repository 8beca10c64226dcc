// SPDX-License-Identifier: Apache-2.0
// div: a / b, element by element, with broadcasting.
#include "mase/ops/elementwise.h"

namespace mase::div_op {
namespace {

const Register<OpRecord> registered{
    elementwise_pair({.name = "div",
                      .aliases = {"truediv"},
                      .function = "operator.truediv",
                      .mase_type = "implicit_func",
                      .summary = "a / b",
                      .element = ElementRule::real},
                     [](const Expr& a, const Expr& b) { return a / b; })};

}  // namespace
}  // namespace mase::div_op
