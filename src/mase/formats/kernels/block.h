// SPDX-License-Identifier: Apache-2.0
// Kernels of the formats whose values share an exponent per block (block_fp, block_minifloat,
// block_log, mxint, mxfp). All five are one rule with different numbers:
//   F = exponent of the block's largest finite magnitude, after rounding where the format carries
//   S = clamp(F - offset, least, most)
//   value = element(x * 2^-S) * 2^S, the element being a whole number or a small float
// NaN and infinities take no part in F; infinities saturate, NaN stays NaN.
#pragma once

#include <cstddef>
#include <cstdint>

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
// The scalar reference for one value of a block with this S: the element, and the element * 2^S.
float block_element(const BlockSpec& spec, int exponent, float x);
float block_value(float element, int exponent);

// `rows` rows of `count` values, each row in consecutive blocks of `block` values, the last one
// partial.
struct BlockRows {
  size_t rows = 0, count = 0, block = 1;

  size_t blocks() const { return rows * ((count + block - 1) / block); }
};
void block_rows_kernel(const BlockSpec& spec, const BlockRows& rows, const float* in, float* out);
// The same taken apart: elements, and the S of every block.
void block_split_kernel(const BlockSpec& spec, const BlockRows& rows, const float* in,
                        float* elements, int32_t* exponents);
// Elements and exponents put together again; `out` may be `elements`.
void block_join_kernel(const BlockRows& rows, const float* elements, const int32_t* exponents,
                       float* out);

// Blocks down the columns of a matrix of `height` rows and `columns` columns: each column is one
// block. The vector lanes run along the columns.
void block_columns_kernel(const BlockSpec& spec, const float* in, float* out, size_t height,
                          size_t columns);
// The pieces, for blocks of any other form.
float block_largest_kernel(const float* in, size_t count);
void block_apply_kernel(const BlockSpec& spec, int exponent, const float* in, float* out,
                        size_t count);

}  // namespace mase
