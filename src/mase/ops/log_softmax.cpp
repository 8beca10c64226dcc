// SPDX-License-Identifier: Apache-2.0
// LogSoftmax: x - log(sum(exp(x))) along one dimension.
#include "mase/ops/softmax.h"

namespace mase::log_softmax_op {
namespace {

const Register<OpRecord> registered{
    softmax_record({.name = "log_softmax",
                    .aliases = {"logsoftmax"},
                    .class_name = "LogSoftmax",
                    .function = "torch.nn.functional.log_softmax",
                    .mase_type = "module_related_func",
                    .summary = "x - log(sum(exp(x))) along a dimension"},
                   true)};

}  // namespace
}  // namespace mase::log_softmax_op
