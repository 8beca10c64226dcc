// SPDX-License-Identifier: Apache-2.0
// Batched matrix products: what matmul and bmm share.
#pragma once

#include "mase/ir/op.h"

namespace mase {

// Fills in all but infer.
OpRecord matrix_product(OpRecord record);

}  // namespace mase
