// SPDX-License-Identifier: Apache-2.0
// MaxPool2d: maximum of each window of [N, C, H, W].
#include "mase/ops/pooling.h"

namespace mase::max_pool2d_op {
namespace {

const Register<OpRecord> registered{pool_record({.name = "max_pool2d",
                                                 .class_name = "MaxPool2d",
                                                 .function = "torch.nn.functional.max_pool2d",
                                                 .mase_type = {},
                                                 .summary = "maximum of each window"},
                                                2, PoolKind::max)};

}  // namespace
}  // namespace mase::max_pool2d_op
