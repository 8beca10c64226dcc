// SPDX-License-Identifier: Apache-2.0
// Products with weights that stay packed (base/packed.h): a few samples are multiplied with what a
// block means while it is in registers, so that memory gives no more than the packed bytes. The
// weights are exactly the floats they stand for; only the order of the sums differs.
#pragma once

#include <cstdint>

#include "mase/base/packed.h"

namespace mase::kernels {

struct PackedRows {
  const PackedType* type;
  const uint8_t* blocks;
  int64_t in;  // values of a row, whole blocks

  int64_t row_bytes() const { return in / type->values * type->bytes; }
};

// Samples as packed_dots takes them lie behind each other, each as long as this, zeros at its end.
inline int64_t packed_width(int64_t in) { return (in + 31) / 32 * 32; }

namespace reference {
void packed_widen(const PackedRows& rows, int64_t first, int64_t count, float* out);
void packed_dots(const PackedRows& rows, int64_t first, int64_t count, const float* x, int64_t n,
                 const float* bias, bool relu, float* y, int64_t stride);
}  // namespace reference

// Rows [first, first + count) as floats, one behind the other: the very bits of PackedType::widen.
void packed_widen(const PackedRows& rows, int64_t first, int64_t count, float* out);

// y[o * stride + s] = bias[o] + sum of row o times sample s, for rows [first, first + count) and n
// samples x; at least 0 with `relu`. `y` and `bias` begin at row 0.
void packed_dots(const PackedRows& rows, int64_t first, int64_t count, const float* x, int64_t n,
                 const float* bias, bool relu, float* y, int64_t stride);

}  // namespace mase::kernels
