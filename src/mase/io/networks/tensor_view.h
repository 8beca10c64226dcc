// SPDX-License-Identifier: Apache-2.0
// A tensor out of a file's bytes: a view wherever alignment and order allow, else a copy that is
// charged to the budget.
#pragma once

#include <memory>
#include <span>

#include "mase/base/tensor.h"
#include "mase/io/read_limits.h"

namespace mase {

// Contiguous elements. `bytes` must hold them all.
Tensor view_or_copy(const Shape& shape, DType dtype, std::span<const std::byte> bytes,
                    const std::shared_ptr<const void>& owner, MemoryBudget& budget,
                    const std::string& place);

// Elements at these strides (counted in elements, none negative) from the beginning of `bytes`. The
// caller has checked that all lie inside.
Tensor view_or_gather(const Shape& shape, const std::vector<int64_t>& strides, DType dtype,
                      std::span<const std::byte> bytes, const std::shared_ptr<const void>& owner,
                      MemoryBudget& budget, const std::string& place);

}  // namespace mase
