// SPDX-License-Identifier: Apache-2.0
// Kernels of the formats with a few values that a comparison decides on (binary, ternary, residual
// binarisation).
#pragma once

#include <cstddef>
#include <span>

namespace mase {

// high where x >= above, low where x < below, middle elsewhere; NaN stays NaN.
struct ThresholdSpec {
  float above = 0, below = 0;
  float low = -1, middle = 0, high = 1;
};
void threshold_kernel(const ThresholdSpec& spec, const float* in, float* out, size_t count);
float threshold_reference(const ThresholdSpec& spec, float x);

// Level by level plus or minus gamma, as the sign of what is left says; zero counts as positive.
void residual_kernel(std::span<const float> gammas, const float* in, float* out, size_t count);
float residual_reference(std::span<const float> gammas, float x);

// Sum and number of the finite magnitudes above a threshold. The order of summation does not depend
// on the machine.
struct MagnitudeSum {
  double sum = 0;
  size_t count = 0;
};
void add_magnitudes(const float* in, size_t count, float threshold, MagnitudeSum& result);

}  // namespace mase
