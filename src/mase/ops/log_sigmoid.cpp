// SPDX-License-Identifier: Apache-2.0
// LogSigmoid: log(1 / (1 + exp(-x))).
#include "mase/ops/elementwise.h"

namespace mase::log_sigmoid_op {
namespace {

Expr expr(const Value&) {
  const Expr x = Expr::operand(0);
  return -softplus(-x);
}

const Register<OpRecord> registered{activation({.name = "log_sigmoid",
                                                .class_name = "LogSigmoid",
                                                .function = "torch._C._nn.log_sigmoid",
                                                .mase_type = {},
                                                .summary = "log(1 / (1 + exp(-x)))"},
                                               expr)};

}  // namespace
}  // namespace mase::log_sigmoid_op
