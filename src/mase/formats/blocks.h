// SPDX-License-Identifier: Apache-2.0
// Types whose blocks share an exponent: the kernels' numbers, and what their formats have in
// common.
#pragma once

#include <functional>

#include "mase/formats/blocking.h"
#include "mase/formats/config.h"
#include "mase/formats/kernels/block.h"
#include "mase/formats/rounder.h"

namespace mase {

// The rule of such a type in the kernels' numbers.
BlockSpec block_spec(const Block& type);

// rounding = "reference": `shared` turns a block's largest magnitude (zeros replaced as MASE does)
// into whatever `element` needs. Blocks and bits are those of the type whose place it takes.
struct ReferenceBlockRule {
  std::function<float(float largest)> shared;
  std::function<float(float shared, float x)> element;
};
Rounder reference_blocks(const Block& like, ReferenceBlockRule rule);

// The bias that elements of so many exponent bits have before a block's own exponent is added. More
// exponents than single precision has are counted from its largest one, as far as the shared bias
// reaches: every value that a block can hold is then an element that can be computed with.
int element_bias(int exponent_width, int bias_width);
// Elements that reach the largest float are scaled down only.
inline int largest_block_exponent(int exponent_width, int bias) {
  return exponent_width < 8 ? bias : 0;
}

// Keys of MASE's block formats.
Field block_size_field(Value default_value);
Field skip_first_dim_field();
Field exponent_bias_width_field();
// Sets the form of the blocks from those keys.
void read_block_form(Block& type, const Value& config);

}  // namespace mase
