// SPDX-License-Identifier: Apache-2.0
// SiLU: x * sigmoid(x).
#include "mase/ops/elementwise.h"

namespace mase::silu_op {
namespace {

Expr expr(const Value&) {
  const Expr x = Expr::operand(0);
  return x * sigmoid(x);
}

const Register<OpRecord> registered{activation({.name = "silu",
                                                .class_name = "SiLU",
                                                .function = "torch.nn.functional.silu",
                                                .mase_type = {},
                                                .summary = "x * sigmoid(x)",
                                                .attributes = {{inplace_field()}},
                                                .repr = inplace_repr},
                                               expr)};

}  // namespace
}  // namespace mase::silu_op
