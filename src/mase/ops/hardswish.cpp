// SPDX-License-Identifier: Apache-2.0
// Hardswish: x * relu6(x + 3) / 6.
#include "mase/ops/elementwise.h"

namespace mase::hardswish_op {
namespace {

Expr expr(const Value&) {
  const Expr x = Expr::operand(0);
  return x * min(max(x + 3.0, 0.0), 6.0) / 6.0;
}

const Register<OpRecord> registered{activation({.name = "hardswish",
                                                .class_name = "Hardswish",
                                                .function = "torch.nn.functional.hardswish",
                                                .mase_type = {},
                                                .summary = "x * relu6(x + 3) / 6",
                                                .attributes = {{inplace_field()}}},
                                               expr)};

}  // namespace
}  // namespace mase::hardswish_op
