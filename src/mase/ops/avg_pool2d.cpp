// SPDX-License-Identifier: Apache-2.0
// AvgPool2d: mean of each window of [N, C, H, W].
#include "mase/ops/pooling.h"

namespace mase::avg_pool2d_op {
namespace {

const Register<OpRecord> registered{pool_record({.name = "avg_pool2d",
                                                 .class_name = "AvgPool2d",
                                                 .function = "torch._C._nn.avg_pool2d",
                                                 .mase_type = {},
                                                 .summary = "mean of each window"},
                                                2, PoolKind::mean)};

}  // namespace
}  // namespace mase::avg_pool2d_op
