// SPDX-License-Identifier: Apache-2.0
// Kernels of integers with a real scale:
//   k = clamp(round_to_even(x / step) + zero, low, high),  value = (k - zero) * step
// Which k is nearest is decided in double precision, and the value is the product rounded once:
// only then is quantising twice the same as quantising once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace mase {

struct ScaledSpec {
  double step = 1, zero = 0;
  double low = 0, high = 0;
};
struct ScaledRowsRule {
  // The spec of values between these limits, which are finite; lowest <= 0 <= largest.
  std::function<ScaledSpec(float lowest, float largest)> spec_of;
  // The range of codes is -high to high and the step the largest magnitude / high.
  bool symmetric = false;
  ScaledSpec range = {};
};

void scaled_kernel(const ScaledSpec& spec, const float* in, float* out, size_t count);
// Rows with a scale each, taken from the row's finite values, in one pass over memory.
void scaled_rows_kernel(const ScaledRowsRule& rule, const float* in, float* out, size_t rows,
                        size_t count);
// k of every value as two's complement, cut by the mask; NaN: the code of zero.
void scaled_codes_kernel(const ScaledSpec& spec, uint32_t mask, const float* in, uint32_t* codes,
                         size_t count);
// Widens [lowest, largest] to the finite values.
void range_kernel(const float* in, size_t count, float& lowest, float& largest);

// Values of codes given as numbers; `out` may be `codes`.
void scaled_values_kernel(const ScaledSpec& spec, const float* codes, float* out, size_t count);

// One by one: what the kernels are tested against.
double scaled_code(const ScaledSpec& spec, float x);
float scaled_value(const ScaledSpec& spec, double code);
float scaled_reference(const ScaledSpec& spec, float x);

}  // namespace mase
