// SPDX-License-Identifier: Apache-2.0
// MaxPool1d: maximum of each window of [N, C, L].
#include "mase/ops/pooling.h"

namespace mase::max_pool1d_op {
namespace {

const Register<OpRecord> registered{pool_record({.name = "max_pool1d",
                                                 .class_name = "MaxPool1d",
                                                 .function = "torch.nn.functional.max_pool1d",
                                                 .mase_type = {},
                                                 .summary = "maximum of each window"},
                                                1, PoolKind::max)};

}  // namespace
}  // namespace mase::max_pool1d_op
