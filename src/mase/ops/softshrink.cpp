// SPDX-License-Identifier: Apache-2.0
// Softshrink: x less lambd towards 0, and 0 near it.
#include "mase/base/fields.h"
#include "mase/ops/elementwise.h"

namespace mase::softshrink_op {
namespace {

Expr expr(const Value& attributes) {
  const Expr x = Expr::operand(0);
  const double lambd = attributes["lambd"].as_double();
  return select(less(lambd, x), x - lambd, select(less(x, -lambd), x + lambd, 0.0));
}

const Register<OpRecord> registered{activation(
    {.name = "softshrink",
     .class_name = "Softshrink",
     .function = "torch._C._nn.softshrink",
     .summary = "x less lambd towards 0, and 0 near it",
     .attributes = {{number_field("lambd", "half the width of what becomes 0", 0.5).from(0)}},
     .repr = [](const Value& attributes) { return python_repr(attributes["lambd"]); }},
    expr)};

}  // namespace
}  // namespace mase::softshrink_op
