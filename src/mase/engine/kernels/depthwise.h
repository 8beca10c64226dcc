// SPDX-License-Identifier: Apache-2.0
// A convolution of one channel with itself: each result is a sum over the taps of a window of one
// plane. Each has a plain twin in `reference`.
#pragma once

#include "mase/engine/kernels/shifted.h"
#include "mase/engine/kernels/windows.h"

namespace mase::kernels {

constexpr int64_t most_depthwise_taps = 49;

namespace reference {

// y = finish(bias + sum over the taps of w(tap) x)
void depthwise(const PlaneWindows& shape, const float* w, float bias, const float* x, float* y,
               const Finish& finish);
// dw(tap) = sum over the results of g x
void depthwise_gradient(const PlaneWindows& shape, const float* g, const float* x, float* dw,
                        bool accumulate);

}  // namespace reference

// `finish.add` may be y itself.
void depthwise(const PlaneWindows& shape, const float* w, float bias, const float* x, float* y,
               const Finish& finish);
void depthwise_gradient(const PlaneWindows& shape, const float* g, const float* x, float* dw,
                        bool accumulate);

}  // namespace mase::kernels
