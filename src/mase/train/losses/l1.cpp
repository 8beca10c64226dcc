// SPDX-License-Identifier: Apache-2.0
// Mean absolute error, PyTorch's L1Loss; its derivative at 0 is 0.
#include "mase/train/loss.h"

namespace mase::l1_loss {
namespace {

const Register<LossRecord> registered{
    elementwise_loss("l1", "mean absolute error", {},
                     [](const Value&) { return abs(Expr::operand(0) - Expr::operand(1)); })};

}  // namespace
}  // namespace mase::l1_loss
