// SPDX-License-Identifier: Apache-2.0
// Sigmoid: 1 / (1 + exp(-x)).
#include "mase/ops/elementwise.h"

namespace mase::sigmoid_op {
namespace {

Expr expr(const Value&) {
  const Expr x = Expr::operand(0);
  return sigmoid(x);
}

const Register<OpRecord> registered{activation({.name = "sigmoid",
                                                .class_name = "Sigmoid",
                                                .function = "torch.sigmoid",
                                                .mase_type = {},
                                                .summary = "1 / (1 + exp(-x))"},
                                               expr)};

}  // namespace
}  // namespace mase::sigmoid_op
