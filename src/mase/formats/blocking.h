// SPDX-License-Identifier: Apache-2.0
// How a tensor falls into blocks. A block is a box: so many entries along each dimension, cut at
// the edges.
#pragma once

#include <functional>
#include <vector>

#include "mase/base/tensor.h"
#include "mase/formats/number_type.h"

namespace mase {

struct Blocking {
  Shape shape;
  Shape block;  // entries per dimension, 1 .. the dimension

  int64_t count() const;  // blocks

  // Calls visit(block number, contiguous runs of that block) in row-major order of blocks.
  void for_each(const std::function<void(int64_t, const std::vector<Run>&)>& visit) const;
};

// The blocks of a tensor of this shape.
Blocking block_form(const Block& type, const Shape& shape);

// MASE's reading of block_size: right-aligned; missing and -1 entries, and those beyond the
// dimension, mean the whole dimension. skip_first_dim makes dimension 0 a batch of separate tensors
// (a vector has no batch, and of four or more dimensions only the last two are blocked).
Blocking mase_blocking(const Shape& shape, const std::vector<int64_t>& block_size,
                       bool skip_first_dim);
// Blocks of `size` values along one axis.
Blocking axis_blocking(const Shape& shape, int64_t size, int64_t axis);

}  // namespace mase
