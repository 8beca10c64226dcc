// SPDX-License-Identifier: Apache-2.0
// The quantizer that all formats with a shared exponent are made of.
#pragma once

#include <functional>
#include <vector>

#include "mase/formats/blocking.h"
#include "mase/formats/elementwise.h"
#include "mase/formats/kernels/block.h"

namespace mase {

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
