// SPDX-License-Identifier: Apache-2.0
// Tanhshrink: x - tanh(x).
#include "mase/ops/elementwise.h"

namespace mase::tanhshrink_op {
namespace {

Expr expr(const Value&) {
  const Expr x = Expr::operand(0);
  return x - tanh(x);
}

const Register<OpRecord> registered{activation({.name = "tanhshrink",
                                                .class_name = "Tanhshrink",
                                                .function = "torch.nn.functional.tanhshrink",
                                                .mase_type = {},
                                                .summary = "x - tanh(x)"},
                                               expr)};

}  // namespace
}  // namespace mase::tanhshrink_op
