// SPDX-License-Identifier: Apache-2.0
// Vector kernels of the formats that round every value on its own. They are written once with
// Highway and chosen at run time; each equals the scalar reference beside it bit for bit, whatever
// the instruction set, the alignment and the length.
#pragma once

#include <cstddef>
#include <cstdint>

#include "mase/formats/rounding.h"

namespace mase {

// round(x * scale) clamped to [low, high], divided by scale. The scale is a power of two. With
// `wrap` > 0, the number of codes, what is beyond the range comes in again at the other end.
struct IntegerSpec {
  float scale = 1, inverse = 1;
  float low = 0, high = 0;
  float wrap = 0;
  Rounding rounding = Rounding::nearest_even;
};
void integer_kernel(const IntegerSpec& spec, const float* in, float* out, size_t count,
                    uint32_t key);
float integer_reference(const IntegerSpec& spec, float x, uint32_t key, uint32_t element);

// A binary floating-point format, subnormals included: nearest even, saturating.
struct FloatSpec {
  int mantissa = 3;   // fraction bits
  int emin = -6;      // exponent of the smallest normal number
  float largest = 0;  // largest finite number
  bool has_infinity = false;
  bool to_infinity = false;     // finite numbers beyond the range become infinite
  bool one_sided_zero = false;  // the negative number -2^emin is not representable (log)
  Rounding rounding = Rounding::nearest_even;
};
void float_kernel(const FloatSpec& spec, const float* in, float* out, size_t count);
float float_reference(const FloatSpec& spec, float x);
double float_reference(const FloatSpec& spec, double x);

// grad_in = grad_out where low <= x <= high, else 0. NaN inputs give 0.
void clipped_gradient_kernel(float low, float high, const float* in, const float* grad_out,
                             float* grad_in, size_t count);

}  // namespace mase
