// SPDX-License-Identifier: Apache-2.0
// SELU: a scaled ELU whose constants keep mean 0 and variance 1 (Klambauer et al., 2017).
#include "mase/ops/elementwise.h"

namespace mase::selu_op {
namespace {

constexpr double alpha = 1.6732632423543772848170429916717;
constexpr double scale = 1.0507009873554804934193349852946;

Expr expr(const Value&) {
  const Expr x = Expr::operand(0);
  return select(less(0.0, x), scale * x, scale * alpha * (exp(x) - 1.0));
}

const Register<OpRecord> registered{activation({.name = "selu",
                                                .class_name = "SELU",
                                                .function = "torch.nn.functional.selu",
                                                .mase_type = {},
                                                .summary = "self-normalising ELU",
                                                .attributes = {{inplace_field()}},
                                                .repr = inplace_repr},
                                               expr)};

}  // namespace
}  // namespace mase::selu_op
