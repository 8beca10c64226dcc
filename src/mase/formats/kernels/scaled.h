// SPDX-License-Identifier: Apache-2.0
// Kernels of integers with a real scale. Products are formed in double precision: only then is
// quantising twice the same as quantising once.
#pragma once

#include <cstddef>

namespace mase {

// k = clamp(rne(x / step) + zero, low, high), value (k - zero) * step.
struct ScaledSpec {
  double step = 1, zero = 0;
  double low = 0, high = 0;
};
void scaled_kernel(const ScaledSpec& spec, const float* in, float* out, size_t count);
float scaled_reference(const ScaledSpec& spec, float x);
double scaled_code(const ScaledSpec& spec, float x);  // NaN: the code of zero

// A learned range, in single precision: its codes have few bits.
//   value: clamp(rne(v), low, high) * step with v = x / step; NaN stays
//   gradient by x: grad_out inside low < v < high, nothing outside
//   gradient by the number: grad_out * (rne(v) - v) inside (nothing unless `rounding_error`),
//   grad_out * at_low or at_high outside; NaN gives nothing. Returned as a sum.
struct LearnedSpec {
  float step = 1;
  float low = 0, high = 0;
  float at_low = 0, at_high = 0;
  bool rounding_error = true;
};
void learned_kernel(const LearnedSpec& spec, const float* in, float* out, size_t count);
void learned_reference(const LearnedSpec& spec, const float* in, float* out, size_t count);
double learned_gradient_kernel(const LearnedSpec& spec, const float* in, const float* grad_out,
                               float* grad_in, size_t count);
double learned_gradient_reference(const LearnedSpec& spec, const float* in, const float* grad_out,
                                  float* grad_in, size_t count);

// Widens [lowest, largest] to the finite values.
void range_kernel(const float* in, size_t count, float& lowest, float& largest);

}  // namespace mase
