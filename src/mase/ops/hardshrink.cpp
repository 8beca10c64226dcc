// SPDX-License-Identifier: Apache-2.0
// Hardshrink: x outside [-lambd, lambd], else 0.
#include "mase/base/fields.h"
#include "mase/ops/elementwise.h"

namespace mase::hardshrink_op {
namespace {

Expr expr(const Value& attributes) {
  const Expr x = Expr::operand(0);
  const double lambd = attributes["lambd"].as_double();
  return select(less(lambd, abs(x)), x, 0.0);
}

const Register<OpRecord> registered{activation(
    {.name = "hardshrink",
     .class_name = "Hardshrink",
     .function = "torch.hardshrink",
     .summary = "x outside [-lambd, lambd], else 0",
     .attributes = {{number_field("lambd", "half the width of what becomes 0", 0.5).from(0)}},
     .repr = [](const Value& attributes) { return python_repr(attributes["lambd"]); }},
    expr)};

}  // namespace
}  // namespace mase::hardshrink_op
