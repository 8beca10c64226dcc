// SPDX-License-Identifier: Apache-2.0
// GELU: x times the normal distribution function of x, exactly or by the tanh formula (Hendrycks
// and Gimpel, 2016).
#include <numbers>

#include "mase/base/fields.h"
#include "mase/ops/elementwise.h"

namespace mase::gelu_op {
namespace {

Expr expr(const Value& attributes) {
  const Expr x = Expr::operand(0);
  if (attributes["approximate"].as_string() == "tanh") {
    const double factor = std::numbers::sqrt2 * std::numbers::inv_sqrtpi;  // sqrt(2 / pi)
    return 0.5 * x * (1.0 + tanh(factor * (x + 0.044715 * x * x * x)));
  }
  return 0.5 * x * (1.0 + erf(x * (1.0 / std::numbers::sqrt2)));
}

const Register<OpRecord> registered{
    activation({.name = "gelu",
                .class_name = "GELU",
                .function = "torch._C._nn.gelu",
                .summary = "x * Phi(x)",
                .attributes = {{text_field("approximate", "the exact form or the tanh formula",
                                           "none", {"none", "tanh"})}},
                .repr =
                    [](const Value& attributes) {
                      return "approximate=" + python_repr(attributes["approximate"]);
                    }},
               expr)};

}  // namespace
}  // namespace mase::gelu_op
