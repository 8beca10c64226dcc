// SPDX-License-Identifier: Apache-2.0
// AdaptiveAvgPool2d: mean of windows that give a certain size of [N, C, H, W].
#include "mase/ops/pooling.h"

namespace mase::adaptive_avg_pool2d_op {
namespace {

const Register<OpRecord> registered{
    adaptive_pool_record({.name = "adaptive_avg_pool2d",
                          .class_name = "AdaptiveAvgPool2d",
                          .function = "torch.nn.functional.adaptive_avg_pool2d",
                          .mase_type = {},
                          .summary = "mean of windows that give a certain size"},
                         2, PoolKind::mean)};

}  // namespace
}  // namespace mase::adaptive_avg_pool2d_op
