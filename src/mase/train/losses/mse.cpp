// SPDX-License-Identifier: Apache-2.0
// Mean squared error, PyTorch's MSELoss.
#include "mase/train/loss.h"

namespace mase::mse_loss {
namespace {

const Register<LossRecord> registered{
    elementwise_loss("mse", "mean squared error", {}, [](const Value&) {
      const Expr d = Expr::operand(0) - Expr::operand(1);
      return d * d;
    })};

}  // namespace
}  // namespace mase::mse_loss
