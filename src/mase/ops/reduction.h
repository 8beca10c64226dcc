// SPDX-License-Identifier: Apache-2.0
// Sums and means over dimensions: what sum and mean share.
#pragma once

#include "mase/ir/op.h"

namespace mase {

OpRecord reduction(OpRecord record, ReduceKind kind);  // sum or mean

}  // namespace mase
