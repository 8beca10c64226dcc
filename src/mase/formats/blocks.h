// SPDX-License-Identifier: Apache-2.0
// How a tensor falls into blocks, and the quantizer that all formats with a shared exponent are
// made of. A block is a box: so many entries along each dimension, cut at the edges.
#pragma once

#include <functional>
#include <vector>

#include "mase/formats/elementwise.h"
#include "mase/formats/kernels/block.h"

namespace mase {

struct Blocking {
  Shape shape;
  Shape block;  // entries per dimension, 1 .. the dimension

  int64_t count() const;  // blocks

  struct Run {
    int64_t offset, length;
  };
  // Calls visit(block number, contiguous runs of that block) in row-major order of blocks.
  void for_each(const std::function<void(int64_t, const std::vector<Run>&)>& visit) const;
};

// MASE's reading of block_size: right-aligned; missing and -1 entries, and those beyond the
// dimension, mean the whole dimension. skip_first_dim makes dimension 0 a batch of separate tensors
// (a vector has no batch, and of four or more dimensions only the last two are blocked).
Blocking mase_blocking(const Shape& shape, const std::vector<int64_t>& block_size,
                       bool skip_first_dim);
// Blocks of `size` values along one axis.
Blocking axis_blocking(const Shape& shape, int64_t size, int64_t axis);

using BlockingOf = std::function<Blocking(const Shape& shape)>;

struct BlockFormat {
  BlockSpec spec;
  BlockingOf blocking;
  double shared_bits = 0;
  Coding coding;  // of the elements, before scaling
};
Quantizer make_block(BlockFormat format, const Value& config);

// rounding = "reference": `exponents` turns the blocks' largest magnitudes (zeros replaced as MASE
// does) into whatever `element` needs.
struct ReferenceBlockFormat {
  BlockingOf blocking;
  std::function<float(float largest)> shared;
  std::function<float(float shared, float x)> element;
  double element_bits = 0, shared_bits = 0;
};
Quantizer make_reference_block(ReferenceBlockFormat format, const Value& config);

// Keys of MASE's block formats.
Field block_size_field(Value default_value);
Field skip_first_dim_field();
Field exponent_bias_width_field();
BlockingOf blocking_from(const Value& config);

}  // namespace mase
