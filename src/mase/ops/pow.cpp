// SPDX-License-Identifier: Apache-2.0
// pow: x to the power of y. Small whole exponents are products, larger ones exp(y log |x|) with x's
// sign, so that negative x have powers; others are exp(y log x). With two tensors the exponents are
// known only when it runs: the engine calls the reference value, which is the C library's power.
#include <cmath>
#include <limits>

#include "mase/base/broadcast.h"
#include "mase/ops/elementwise.h"

namespace mase::pow_op {
namespace {

// exp(y log x), at 0 apart: there log x is infinite and so would be the slope, which is 0 where y
// > 1.
Expr by_logarithm(const Expr& x, double y) {
  const Expr apart = less(x, 0.0) + less(0.0, x);
  const double at_zero = y > 0 ? 0.0 : std::numeric_limits<double>::infinity();
  return select(apart, exp(y * log(select(apart, x, 1.0))), (x - x) + at_zero);  // NaN stays NaN
}

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
    if (exponent != std::floor(exponent)) return by_logarithm(x, exponent);
    const Expr size = by_logarithm(abs(x), exponent);
    const bool odd = std::fmod(exponent, 2) != 0;
    return odd ? select(less(x, 0.0), -size, size) : size;
  }
  return exp(y * log(x));
}

OpRecord record() {
  OpRecord op = elementwise_pair({.name = "pow",
                                  .function = "torch.pow",
                                  .mase_type = "builtin_func",
                                  .summary = "x to the power of y"},
                                 power);
  op.eval = [by_expression = op.eval](const OpCall& call) {
    if (call.inputs.size() != 2) return by_expression(call);
    const Array &x = *call.inputs[0], &y = *call.inputs[1];
    Array z(broadcast(x.shape, y.shape));
    const std::vector<size_t> from_x = broadcast_places(x.shape, z.shape),
                              from_y = broadcast_places(y.shape, z.shape);
    for (size_t i = 0; i < z.data.size(); ++i)
      z.data[i] = std::pow(x.data[from_x[i]], y.data[from_y[i]]);
    return z;
  };
  op.lower = [by_expression = op.lower](Lowering& lowering, const Value& attributes,
                                        const std::vector<Slot>& inputs) {
    return inputs.size() == 2 ? -1 : by_expression(lowering, attributes, inputs);
  };
  return op;
}

const Register<OpRecord> registered{record()};

}  // namespace
}  // namespace mase::pow_op
