// SPDX-License-Identifier: Apache-2.0
// Conv1d: convolution of [N, C, L].
#include "mase/ops/convolution.h"

namespace mase::conv1d_op {
namespace {

const Register<OpRecord> registered{convolution_record({.name = "conv1d",
                                                        .class_name = "Conv1d",
                                                        .function = "torch.conv1d",
                                                        .mase_type = {},
                                                        .summary = "convolution of [N, C, L]"},
                                                       1, false)};

}  // namespace
}  // namespace mase::conv1d_op
