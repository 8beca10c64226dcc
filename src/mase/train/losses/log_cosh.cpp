// SPDX-License-Identifier: Apache-2.0
// log cosh(d) = d + softplus(-2 d) - log 2: squared near 0, absolute far from it.
#include <cmath>

#include "mase/train/loss.h"

namespace mase::log_cosh_loss {
namespace {

const Register<LossRecord> registered{
    elementwise_loss("log_cosh", "log cosh of the error: a smooth l1", {}, [](const Value&) {
      const Expr d = Expr::operand(0) - Expr::operand(1);
      return d + softplus(-2.0 * d) - std::log(2.0);
    })};

}  // namespace
}  // namespace mase::log_cosh_loss
