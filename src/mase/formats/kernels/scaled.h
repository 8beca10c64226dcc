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

// Widens [lowest, largest] to the finite values.
void range_kernel(const float* in, size_t count, float& lowest, float& largest);

}  // namespace mase
