// SPDX-License-Identifier: Apache-2.0
// PyTorch's SmoothL1Loss: huber over beta.
#include "mase/base/fields.h"
#include "mase/train/loss.h"

namespace mase::smooth_l1_loss {
namespace {

Expr expr(const Value& options) {
  const double beta = options["beta"].as_double();
  const Expr d = abs(Expr::operand(0) - Expr::operand(1));
  return beta == 0 ? d : select(less(d, beta), 0.5 / beta * (d * d), d - 0.5 * beta);
}

const Register<LossRecord> registered{elementwise_loss(
    "smooth_l1", "absolute error, rounded off within beta of 0",
    {{number_field("beta", "where the parabola becomes a line; 0: l1", 1.0).from(0)}}, expr)};

}  // namespace
}  // namespace mase::smooth_l1_loss
