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

// Gradients of a range that is learned. With v = x / step: inside low < v < high the value gets
// grad_out and the number grad_out * (rne(v) - v) (or nothing, unless `rounding_error`); outside
// the value gets nothing and the number grad_out * at_low or at_high. NaN gets nothing. Returns the
// sum for the number.
struct LearnedSpec {
  double step = 1;
  double low = 0, high = 0;
  double at_low = 0, at_high = 0;
  bool rounding_error = true;
};
double learned_gradient_kernel(const LearnedSpec& spec, const float* in, const float* grad_out,
                               float* grad_in, size_t count);
double learned_gradient_reference(const LearnedSpec& spec, const float* in, const float* grad_out,
                                  float* grad_in, size_t count);

// Widens [lowest, largest] to the finite values.
void range_kernel(const float* in, size_t count, float& lowest, float& largest);

}  // namespace mase
