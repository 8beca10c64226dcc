// SPDX-License-Identifier: Apache-2.0
// pow: x to the power of y. Small whole exponents are products, so that negative x have powers;
// others are exp(y log x).
#include <cmath>

#include "mase/ops/elementwise.h"

namespace mase::pow_op {
namespace {

Expr power(const Expr& x, const Expr& y) {
  if (y.node().op == ScalarOp::constant) {
    const double exponent = y.node().constant;
    if (exponent == 0.5) return sqrt(x);
    if (exponent == -0.5) return 1.0 / sqrt(x);
    if (exponent == std::floor(exponent) && std::abs(exponent) <= 16) {
      Expr result = 1.0;
      for (int i = 0; i < static_cast<int>(std::abs(exponent)); ++i) result = result * x;
      return exponent < 0 ? 1.0 / result : result;
    }
  }
  return exp(y * log(x));
}

const Register<OpRecord> registered{elementwise_pair({.name = "pow",
                                                      .function = "torch.pow",
                                                      .mase_type = "builtin_func",
                                                      .summary = "x to the power of y"},
                                                     power)};

}  // namespace
}  // namespace mase::pow_op
