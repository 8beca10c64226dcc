// SPDX-License-Identifier: Apache-2.0
// Hardshrink: x outside [-lambd, lambd], else 0.
#include "mase/ops/elementwise.h"

namespace mase::hardshrink_op {
namespace {

Expr expr(const Value& attributes) {
  const Expr x = Expr::operand(0);
  const double lambd = attributes["lambd"].as_double();
  return select(less(lambd, abs(x)), x, 0.0);
}

const Register<OpRecord> registered{
    activation({.name = "hardshrink",
                .class_name = "Hardshrink",
                .function = "torch.hardshrink",
                .mase_type = {},
                .summary = "x outside [-lambd, lambd], else 0",
                .attributes = {{{.name = "lambd",
                                 .type = FieldType::number,
                                 .default_value = 0.5,
                                 .help = "half the width of what becomes 0",
                                 .minimum = 0}}},
                .repr = [](const Value& attributes) { return python_repr(attributes["lambd"]); }},
               expr)};

}  // namespace
}  // namespace mase::hardshrink_op
