// SPDX-License-Identifier: Apache-2.0
// AvgPool1d: mean of each window of [N, C, L].
#include "mase/ops/pooling.h"

namespace mase::avg_pool1d_op {
namespace {

const Register<OpRecord> registered{pool_record({.name = "avg_pool1d",
                                                 .class_name = "AvgPool1d",
                                                 .function = "torch.avg_pool1d",
                                                 .mase_type = {},
                                                 .summary = "mean of each window"},
                                                1, PoolKind::mean)};

}  // namespace
}  // namespace mase::avg_pool1d_op
