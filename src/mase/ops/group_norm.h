// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mase/ir/op.h"

namespace mase {

// Normalisation of each sample over groups of channels, dim 1, and all positions. `groups` reads
// their number from attributes and channels.
OpRecord group_norm_record(OpRecord record,
                           int64_t (*groups)(const Value& attributes, int64_t channels),
                           const std::string& channels_attribute);

}  // namespace mase
