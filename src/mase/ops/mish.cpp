// SPDX-License-Identifier: Apache-2.0
// Mish: x tanh(log(1 + exp(x))).
#include "mase/ops/elementwise.h"

namespace mase::mish_op {
namespace {

Expr expr(const Value&) {
  const Expr x = Expr::operand(0);
  return x * tanh(softplus(x));
}

const Register<OpRecord> registered{activation({.name = "mish",
                                                .class_name = "Mish",
                                                .function = "torch._C._nn.mish",
                                                .mase_type = {},
                                                .summary = "x tanh(log(1 + exp(x)))",
                                                .attributes = {{inplace_field()}},
                                                .repr = inplace_repr},
                                               expr)};

}  // namespace
}  // namespace mase::mish_op
