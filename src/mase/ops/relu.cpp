// SPDX-License-Identifier: Apache-2.0
// ReLU: max(x, 0). Its gradient at 0 is 0, as PyTorch's.
#include "mase/ops/elementwise.h"

namespace mase::relu_op {
namespace {

const Register<OpRecord> registered{activation(
    {
        .name = "relu",
        .class_name = "ReLU",
        .function = "torch.nn.functional.relu",
        .mase_type = {},
        .summary = "max(x, 0)",
        .attributes = {{inplace_field()}},
        .unsigned_operands = {"data_in"},
        .repr = inplace_repr,
    },
    [](const Value&) { return max(Expr::operand(0), 0.0); })};

}  // namespace
}  // namespace mase::relu_op
