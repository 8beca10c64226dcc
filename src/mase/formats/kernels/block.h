// SPDX-License-Identifier: Apache-2.0
// Kernels of the formats whose values share an exponent per block (block_fp, block_minifloat,
// block_log, mxint, mxfp). All five are one rule with different numbers:
//   F = exponent of the block's largest finite magnitude, after rounding where the format carries
//   S = clamp(F - offset, least, most)
//   value = element(x * 2^-S) * 2^S, the element being a whole number or a small float
// NaN and infinities take no part in F; infinities saturate, NaN stays NaN.
#pragma once

#include <cstddef>
#include <vector>

#include "mase/formats/kernels/elementwise.h"

namespace mase {

struct BlockSpec {
  bool whole = true;    // elements are whole numbers in [-element.largest, element.largest]
  FloatSpec element;    // the small float otherwise; its rounding counts in both cases
  int carry_bits = -1;  // round the magnitude to this many fraction bits first; -1: do not
  int offset = 0, least = 0, most = 0;
};

// S for a block with this largest finite magnitude.
int block_exponent(const BlockSpec& spec, float largest);
// One value of a block with this S: the scalar reference.
float block_element(const BlockSpec& spec, int exponent, float x);

// Consecutive blocks of `block` values, the last one partial; `rows` rows of `count` values.
void block_rows_kernel(const BlockSpec& spec, const float* in, float* out, size_t rows,
                       size_t count, size_t block);
// Blocks down the columns of a matrix of `height` rows and `columns` columns: each column is one
// block. The vector lanes run along the columns.
void block_columns_kernel(const BlockSpec& spec, const float* in, float* out, size_t height,
                          size_t columns);
// The pieces, for blocks of any other form.
float block_largest_kernel(const float* in, size_t count);
void block_apply_kernel(const BlockSpec& spec, int exponent, const float* in, float* out,
                        size_t count);

}  // namespace mase
