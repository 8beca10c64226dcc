// SPDX-License-Identifier: Apache-2.0
// Binary cross-entropy of logits, each output on its own: PyTorch's BCEWithLogitsLoss.
#include "mase/base/fields.h"
#include "mase/train/loss.h"

namespace mase::bce_with_logits_loss {
namespace {

// -p t log sigmoid(x) - (1 - t) log(1 - sigmoid(x)), without ever taking the logarithm of 0.
Expr expr(const Value& options) {
  const Expr x = Expr::operand(0), t = Expr::operand(1);
  const double more = options["pos_weight"].as_double() - 1;
  return softplus(x) - t * x + more * (t * softplus(-x));
}

LossRecord record() {
  LossRecord loss = elementwise_loss(
      "bce_with_logits", "binary cross-entropy of logits",
      {{number_field("pos_weight", "weight of targets that are 1", 1.0).from(0)}}, expr);
  loss.aliases = {"bce-with-logits", "bce"};
  return loss;
}

const Register<LossRecord> registered{record()};

}  // namespace
}  // namespace mase::bce_with_logits_loss
