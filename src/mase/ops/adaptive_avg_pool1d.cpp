// SPDX-License-Identifier: Apache-2.0
// AdaptiveAvgPool1d: mean of windows that give a certain size of [N, C, L].
#include "mase/ops/pooling.h"

namespace mase::adaptive_avg_pool1d_op {
namespace {

const Register<OpRecord> registered{
    adaptive_pool_record({.name = "adaptive_avg_pool1d",
                          .class_name = "AdaptiveAvgPool1d",
                          .function = "torch.nn.functional.adaptive_avg_pool1d",
                          .mase_type = {},
                          .summary = "mean of windows that give a certain size"},
                         1, PoolKind::mean)};

}  // namespace
}  // namespace mase::adaptive_avg_pool1d_op
