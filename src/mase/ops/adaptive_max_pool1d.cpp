// SPDX-License-Identifier: Apache-2.0
// AdaptiveMaxPool1d: maximum of windows that give a certain size of [N, C, L].
#include "mase/ops/pooling.h"

namespace mase::adaptive_max_pool1d_op {
namespace {

const Register<OpRecord> registered{
    adaptive_pool_record({.name = "adaptive_max_pool1d",
                          .class_name = "AdaptiveMaxPool1d",
                          .function = "torch.nn.functional.adaptive_max_pool1d",
                          .mase_type = {},
                          .summary = "maximum of windows that give a certain size"},
                         1, PoolKind::max)};

}  // namespace
}  // namespace mase::adaptive_max_pool1d_op
