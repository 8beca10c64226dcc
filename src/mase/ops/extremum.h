// SPDX-License-Identifier: Apache-2.0
// max and min: over all values one number; along a dimension two results, the values and where they
// stand (the first of equal ones). NaN is larger and smaller than anything, as PyTorch has it.
#pragma once

#include "mase/ir/op.h"

namespace mase {

OpRecord extremum(OpRecord record, bool largest);

// Where along the dimension the extreme value stands, `size` values `stride` apart.
size_t extreme_place(const double* values, size_t size, size_t stride, bool largest);

}  // namespace mase
