// SPDX-License-Identifier: Apache-2.0
// What normalises each sample over some of its rows: softmax and layer norm, with their gradients.
// `length` rows, `step` floats apart, n lanes of each; padding as in kernels.h. Each has a plain
// twin in `reference`, which also serves tensors without a batch.
#pragma once

#include <cstdint>

namespace mase::kernels {

struct SampleRange {
  int64_t length, step, n;
};

// Sums over the samples that a layer norm's gradient adds to: of g xhat and of g, per row.
struct LayerNormSums {
  double *weight, *bias;
};

namespace reference {

void softmax(const SampleRange& range, const float* x, float* y, bool logarithm);
void softmax_gradient(const SampleRange& range, const float* y, const float* g, float* dx,
                      bool logarithm, bool accumulate);
// y = (x - mean) / sqrt(variance + eps) * weight + bias; weight and bias per row, or null.
void layer_norm(const SampleRange& range, const float* x, const float* weight, const float* bias,
                double eps, float* y);
// `dx` may be null.
void layer_norm_gradient(const SampleRange& range, const float* x, const float* g,
                         const float* weight, double eps, float* dx, bool accumulate,
                         const LayerNormSums& sums);

}  // namespace reference

void softmax(const SampleRange& range, const float* x, float* y, bool logarithm);
void softmax_gradient(const SampleRange& range, const float* y, const float* g, float* dx,
                      bool logarithm, bool accumulate);
void layer_norm(const SampleRange& range, const float* x, const float* weight, const float* bias,
                double eps, float* y);
void layer_norm_gradient(const SampleRange& range, const float* x, const float* g,
                         const float* weight, double eps, float* dx, bool accumulate,
                         const LayerNormSums& sums);

}  // namespace mase::kernels
