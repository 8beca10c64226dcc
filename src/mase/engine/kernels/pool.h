// SPDX-License-Identifier: Apache-2.0
// The windows of max pooling, one result position at a time: lanes of several places of x, whose
// offsets are given. A NaN is the maximum of its window, and the first of equal maxima takes the
// gradient, as in PyTorch. Each has a plain twin in `reference`.
#pragma once

#include <cstdint>
#include <span>

namespace mase::kernels {
namespace reference {

// y = the largest of x[tap...], -inf without taps
void max_pool(const float* x, std::span<const int64_t> taps, float* y, int64_t n);
// dx[tap...] += up where this tap is the first that equals y
void max_pool_gradient(const float* x, std::span<const int64_t> taps, const float* y,
                       const float* up, float* dx, int64_t n);

}  // namespace reference

void max_pool(const float* x, std::span<const int64_t> taps, float* y, int64_t n);
void max_pool_gradient(const float* x, std::span<const int64_t> taps, const float* y,
                       const float* up, float* dx, int64_t n);

}  // namespace mase::kernels
