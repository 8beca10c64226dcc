// SPDX-License-Identifier: Apache-2.0
// Conv2d: convolution of [N, C, H, W].
#include "mase/ops/convolution.h"

namespace mase::conv2d_op {
namespace {

const Register<OpRecord> registered{convolution_record({.name = "conv2d",
                                                        .class_name = "Conv2d",
                                                        .function = "torch.conv2d",
                                                        .mase_type = {},
                                                        .summary = "convolution of [N, C, H, W]"},
                                                       2, false)};

}  // namespace
}  // namespace mase::conv2d_op
