// SPDX-License-Identifier: Apache-2.0
// Negative log-likelihood of counts, PyTorch's PoissonNLLLoss with log_input and without full.
#include "mase/train/loss.h"

namespace mase::poisson_nll_loss {
namespace {

const Register<LossRecord> registered{
    elementwise_loss("poisson_nll", "counts, whose mean is exp(output)", {}, [](const Value&) {
      const Expr x = Expr::operand(0), t = Expr::operand(1);
      return exp(x) - t * x;
    })};

}  // namespace
}  // namespace mase::poisson_nll_loss
