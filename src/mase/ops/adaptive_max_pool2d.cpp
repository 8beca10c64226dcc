// SPDX-License-Identifier: Apache-2.0
// AdaptiveMaxPool2d: maximum of windows that give a certain size of [N, C, H, W].
#include "mase/ops/pooling.h"

namespace mase::adaptive_max_pool2d_op {
namespace {

const Register<OpRecord> registered{
    adaptive_pool_record({.name = "adaptive_max_pool2d",
                          .class_name = "AdaptiveMaxPool2d",
                          .function = "torch.nn.functional.adaptive_max_pool2d",
                          .mase_type = {},
                          .summary = "maximum of windows that give a certain size"},
                         2, PoolKind::max)};

}  // namespace
}  // namespace mase::adaptive_max_pool2d_op
