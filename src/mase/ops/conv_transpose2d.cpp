// SPDX-License-Identifier: Apache-2.0
// ConvTranspose2d: transposed convolution of [N, C, H, W].
#include "mase/ops/convolution.h"

namespace mase::conv_transpose2d_op {
namespace {

const Register<OpRecord> registered{
    convolution_record({.name = "conv_transpose2d",
                        .class_name = "ConvTranspose2d",
                        .function = "torch.conv_transpose2d",
                        .mase_type = {},
                        .summary = "transposed convolution of [N, C, H, W]"},
                       2, true)};

}  // namespace
}  // namespace mase::conv_transpose2d_op
