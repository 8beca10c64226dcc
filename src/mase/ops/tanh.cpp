// SPDX-License-Identifier: Apache-2.0
// Tanh: hyperbolic tangent.
#include "mase/ops/elementwise.h"

namespace mase::tanh_op {
namespace {

Expr expr(const Value&) {
  const Expr x = Expr::operand(0);
  return tanh(x);
}

const Register<OpRecord> registered{activation({.name = "tanh",
                                                .class_name = "Tanh",
                                                .function = "torch.tanh",
                                                .mase_type = {},
                                                .summary = "hyperbolic tangent"},
                                               expr)};

}  // namespace
}  // namespace mase::tanh_op
