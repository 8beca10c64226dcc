// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mase/ir/op.h"

namespace mase {

// PyTorch's MaxPool and AvgPool of one or two dimensions.
OpRecord pool_record(OpRecord record, size_t dims, PoolKind kind);
// Windows that divide the positions into `output_size` parts.
OpRecord adaptive_pool_record(OpRecord record, size_t dims, PoolKind kind);

}  // namespace mase
