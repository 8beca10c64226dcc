// SPDX-License-Identifier: Apache-2.0
// detach: x itself, through which no gradient flows.
#include "mase/ir/op.h"

namespace mase::detach_op {
namespace {

OpGradients grad(const OpCall& call, const Array&, const Array&) {
  return OpGradients{{Array(call.inputs[0]->shape)}};
}

const Register<OpRecord> registered{{
    .name = "detach",
    .function = "torch.detach",
    .mase_type = "builtin_func",
    .summary = "x itself, without its gradient",
    .infer = [](const Value&, const std::vector<Shape>& inputs) { return inputs[0]; },
    .eval = [](const OpCall& call) { return *call.inputs[0]; },
    .grad = grad,
    .lower = [](Lowering& lowering, const Value&, const std::vector<Slot>& inputs) -> Slot {
      return lowering.training() ? -1 : inputs[0];
    },
}};

}  // namespace
}  // namespace mase::detach_op
