// SPDX-License-Identifier: Apache-2.0
// Samples in rows times weights, both of at most 8 bits, as integers: the outputs lie along the
// lanes, as in other programs' memory. What integer_dot.h is for rows of features.
#pragma once

#include <cstdint>

#include "mase/engine/kernels/integer_dot.h"

namespace mase::kernels {

struct IntegerRows {
  int64_t rows, in, out;
  int64_t words() const { return (in + quad - 1) / quad; }  // of a sample
};

namespace reference {

// Rows of floats that times `scale` are whole numbers from -128 to 127: as bytes to which 128 was
// added, rows of (in + 3) / 4 words, filled up with zeros (128). False if a value is no such
// number: then `out` means nothing. Four words behind the last may be written.
bool pack_rows(int64_t rows, int64_t in, const float* x, float scale, uint32_t* out);
// y[r][o] = bias[o] + unit * (sum over the bytes of a sample of (x(r, i) - 128) w(i, o)). Words of
// x are what pack_rows wrote; those of w, [words][out], are signed bytes. No bias: null.
void integer_rows(const IntegerRows& shape, const uint32_t* x, const uint32_t* w, float unit,
                  const float* bias, float* y);

}  // namespace reference

bool pack_rows(int64_t rows, int64_t in, const float* x, float scale, uint32_t* out);
void integer_rows(const IntegerRows& shape, const uint32_t* x, const uint32_t* w, float unit,
                  const float* bias, float* y);

}  // namespace mase::kernels
