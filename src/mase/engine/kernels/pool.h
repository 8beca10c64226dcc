// SPDX-License-Identifier: Apache-2.0
// Max pooling of one plane. A NaN is the maximum of its window, a window without taps has -inf, and
// the first of equal maxima takes the gradient, as in PyTorch. Each has a plain twin in
// `reference`.
#pragma once

#include "mase/engine/kernels/windows.h"

namespace mase::kernels {
namespace reference {

// y = the largest of each window
void max_pool(const PlaneWindows& shape, const float* x, float* y);
// dx += up, at the first place of each window that equals y
void max_pool_gradient(const PlaneWindows& shape, const float* x, const float* y, const float* up,
                       float* dx);

}  // namespace reference

void max_pool(const PlaneWindows& shape, const float* x, float* y);
void max_pool_gradient(const PlaneWindows& shape, const float* x, const float* y, const float* up,
                       float* dx);

}  // namespace mase::kernels
