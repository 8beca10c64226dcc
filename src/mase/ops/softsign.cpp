// SPDX-License-Identifier: Apache-2.0
// Softsign: x / (1 + |x|).
#include "mase/ops/elementwise.h"

namespace mase::softsign_op {
namespace {

Expr expr(const Value&) {
  const Expr x = Expr::operand(0);
  return x / (1.0 + abs(x));
}

const Register<OpRecord> registered{activation({.name = "softsign",
                                                .class_name = "Softsign",
                                                .function = "torch.nn.functional.softsign",
                                                .mase_type = {},
                                                .summary = "x / (1 + |x|)"},
                                               expr)};

}  // namespace
}  // namespace mase::softsign_op
