// SPDX-License-Identifier: Apache-2.0
// ELU: x where x > 0, alpha (exp(x) - 1) elsewhere (Clevert et al., 2015).
#include "mase/base/fields.h"
#include "mase/ops/elementwise.h"

namespace mase::elu_op {
namespace {

Expr expr(const Value& attributes) {
  const Expr x = Expr::operand(0);
  return select(less(0.0, x), x, attributes["alpha"].as_double() * (exp(x) - 1.0));
}

std::string repr(const Value& attributes) {
  return "alpha=" + python_repr(attributes["alpha"]) +
         (attributes["inplace"].as_bool() ? ", inplace=True" : "");
}

const Register<OpRecord> registered{activation(
    {.name = "elu",
     .class_name = "ELU",
     .function = "torch.nn.functional.elu",
     .summary = "x if x > 0, else alpha * (exp(x) - 1)",
     .attributes = {{number_field("alpha", "the limit where x is very negative is -alpha", 1.0),
                     inplace_field()}},
     .repr = repr},
    expr)};

}  // namespace
}  // namespace mase::elu_op
