// SPDX-License-Identifier: Apache-2.0
// round: the nearest whole number, halves to the even one.
#include "mase/ops/elementwise.h"

namespace mase::round_op {
namespace {

const Register<OpRecord> registered{
    elementwise({.name = "round",
                 .function = "torch.round",
                 .mase_type = "builtin_func",
                 .summary = "the nearest whole number, halves to the even one"},
                [](const Value&) {
                  const Expr x = Expr::operand(0);
                  return round(x);
                })};

}  // namespace
}  // namespace mase::round_op
