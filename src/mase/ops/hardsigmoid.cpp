// SPDX-License-Identifier: Apache-2.0
// Hardsigmoid: relu6(x + 3) / 6.
#include "mase/ops/elementwise.h"

namespace mase::hardsigmoid_op {
namespace {

Expr expr(const Value&) {
  const Expr x = Expr::operand(0);
  return min(max(x + 3.0, 0.0), 6.0) / 6.0;
}

const Register<OpRecord> registered{activation({.name = "hardsigmoid",
                                                .class_name = "Hardsigmoid",
                                                .function = "torch.nn.functional.hardsigmoid",
                                                .mase_type = {},
                                                .summary = "relu6(x + 3) / 6",
                                                .attributes = {{inplace_field()}}},
                                               expr)};

}  // namespace
}  // namespace mase::hardsigmoid_op
