// SPDX-License-Identifier: Apache-2.0
// ReLU6: min(max(x, 0), 6).
#include "mase/ops/elementwise.h"

namespace mase::relu6_op {
namespace {

const Register<OpRecord> registered{
    activation({.name = "relu6",
                .class_name = "ReLU6",
                .function = "torch.nn.functional.relu6",
                .mase_type = {},
                .summary = "min(max(x, 0), 6)",
                .attributes = {{inplace_field()}},
                .repr = inplace_repr},
               [](const Value&) { return min(max(Expr::operand(0), 0.0), 6.0); })};

}  // namespace
}  // namespace mase::relu6_op
