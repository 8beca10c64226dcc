// SPDX-License-Identifier: Apache-2.0
// clamp: x between a least and a largest value, of which one may be missing. The gradient is 1 at
// the limits, as PyTorch's.
#include "mase/base/fields.h"
#include "mase/ops/elementwise.h"

namespace mase::clamp_op {
namespace {

Expr expr(const Value& attributes) {
  const Expr x = Expr::operand(0);
  Expr result = x;
  if (!attributes["min"].is_null()) {
    const Expr low = attributes["min"].as_double();
    result = select(less(result, low), low, result);
  }
  if (!attributes["max"].is_null()) {
    const Expr high = attributes["max"].as_double();
    result = select(less(high, result), high, result);
  }
  return result;
}

const Register<OpRecord> registered{
    elementwise({.name = "clamp",
                 .aliases = {"clip"},
                 .function = "torch.clamp",
                 .mase_type = "builtin_func",
                 .summary = "x between two limits",
                 .attributes = {{number_field("min", "the least value"),
                                 number_field("max", "the largest value")}},
                 .scalars = {{"min"}, {"max"}}},
                expr)};

}  // namespace
}  // namespace mase::clamp_op
