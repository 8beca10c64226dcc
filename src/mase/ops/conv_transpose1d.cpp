// SPDX-License-Identifier: Apache-2.0
// ConvTranspose1d: transposed convolution of [N, C, L].
#include "mase/ops/convolution.h"

namespace mase::conv_transpose1d_op {
namespace {

const Register<OpRecord> registered{
    convolution_record({.name = "conv_transpose1d",
                        .class_name = "ConvTranspose1d",
                        .function = "torch.conv_transpose1d",
                        .mase_type = {},
                        .summary = "transposed convolution of [N, C, L]"},
                       1, true)};

}  // namespace
}  // namespace mase::conv_transpose1d_op
