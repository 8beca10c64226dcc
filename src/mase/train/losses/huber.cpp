// SPDX-License-Identifier: Apache-2.0
// Huber's loss (Huber, 1964), PyTorch's HuberLoss.
#include "mase/base/fields.h"
#include "mase/train/loss.h"

namespace mase::huber_loss {
namespace {

Expr expr(const Value& options) {
  const double delta = options["delta"].as_double();
  const Expr d = abs(Expr::operand(0) - Expr::operand(1));
  return select(less(d, delta), 0.5 * (d * d), delta * (d - 0.5 * delta));
}

const Register<LossRecord> registered{elementwise_loss(
    "huber", "squared near 0, absolute from delta on",
    {{number_field("delta", "where the parabola becomes a line", 1.0).from(1e-6)}}, expr)};

}  // namespace
}  // namespace mase::huber_loss
