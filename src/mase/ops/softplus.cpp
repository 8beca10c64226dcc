// SPDX-License-Identifier: Apache-2.0
// Softplus: log(1 + exp(beta x)) / beta, and x itself where beta x is above the threshold.
#include "mase/base/fields.h"
#include "mase/ops/elementwise.h"

namespace mase::softplus_op {
namespace {

Expr expr(const Value& attributes) {
  const Expr x = Expr::operand(0);
  const double beta = attributes["beta"].as_double();
  return select(less(attributes["threshold"].as_double(), beta * x), x, softplus(beta * x) / beta);
}

std::string repr(const Value& attributes) {
  return fmt::format("beta={}, threshold={}", python_repr(attributes["beta"]),
                     python_repr(attributes["threshold"]));
}

std::optional<std::string> not_zero(const Value& value) {
  if (value.as_double() == 0) return "must not be 0";
  return {};
}

const Register<OpRecord> registered{activation(
    {.name = "softplus",
     .class_name = "Softplus",
     .function = "torch._C._nn.softplus",
     .summary = "log(1 + exp(beta * x)) / beta",
     .attributes = {{number_field("beta", "steepness", 1).checked(not_zero),
                     number_field("threshold", "linear where beta * x is above this", 20)}},
     .repr = repr},
    expr)};

}  // namespace
}  // namespace mase::softplus_op
