// SPDX-License-Identifier: Apache-2.0
// LeakyReLU: x where x > 0, a small multiple of x elsewhere.
#include "mase/base/fields.h"
#include "mase/ops/elementwise.h"

namespace mase::leaky_relu_op {
namespace {

Expr expr(const Value& attributes) {
  const Expr x = Expr::operand(0);
  return select(less(0.0, x), x, attributes["negative_slope"].as_double() * x);
}

std::string repr(const Value& attributes) {
  return "negative_slope=" + python_repr(attributes["negative_slope"]) +
         (attributes["inplace"].as_bool() ? ", inplace=True" : "");
}

const Register<OpRecord> registered{activation(
    {.name = "leaky_relu",
     .class_name = "LeakyReLU",
     .function = "torch.nn.functional.leaky_relu",
     .summary = "x if x > 0, else negative_slope * x",
     .attributes = {{number_field("negative_slope", "slope where x < 0", 0.01), inplace_field()}},
     .repr = repr},
    expr)};

}  // namespace
}  // namespace mase::leaky_relu_op
