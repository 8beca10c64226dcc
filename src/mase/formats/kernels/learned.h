// SPDX-License-Identifier: Apache-2.0
// Kernels of ranges that training finds.
#pragma once

#include <cstddef>

namespace mase {

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

}  // namespace mase
