// SPDX-License-Identifier: Apache-2.0
// Identity: x.
#include "mase/ir/op.h"

namespace mase::identity_op {
namespace {

OpGradients grad(const OpCall&, const Array&, const Array& g) { return OpGradients{{g}}; }

const Register<OpRecord> registered{{
    .name = "identity",
    .aliases = {"contiguous"},
    .class_name = "Identity",
    .mase_type = "module_related_func",
    .summary = "x itself",
    .operands = {"data_in", "data_out"},
    .infer = [](const Value&, const std::vector<Shape>& inputs) { return inputs[0]; },
    .eval = [](const OpCall& call) { return *call.inputs[0]; },
    .grad = grad,
    .lower = [](Lowering&, const Value&, const std::vector<Slot>& inputs) { return inputs[0]; },
}};

}  // namespace
}  // namespace mase::identity_op
