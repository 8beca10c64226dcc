// SPDX-License-Identifier: Apache-2.0
// The engine's kernels. Matrices are rows of `stride` floats of which the first `n` count; the
// stride of batch tensors is a multiple of 16 and rows are 64-byte aligned, so the fast kernels may
// read and write a row's padding, whose content means nothing. With stride 1 (tensors without a
// batch) nothing is padded and n is 1. Each kernel has a plain twin in `reference`, against which
// it is tested.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <span>

#include "mase/ir/expr.h"

namespace mase::kernels {

// A weight matrix by strides: element (o, i) is at o * out_step + i * in_step.
struct LinearShape {
  int64_t out, in;
  int64_t out_step, in_step;
  int64_t stride, n;  // of the rows of x and y
  int threads = 1;
};

struct NormShape {
  int64_t channels, positions;  // rows are [channels][positions]
  int64_t stride, n;
  int threads = 1;
};

// One batch-norm sweep. `mean` and `inverse` (1 / deviation) are per channel.
struct NormParameters {
  const float* weight = nullptr;  // null: 1
  const float* bias = nullptr;    // null: 0
  double eps = 1e-5;
  // What is below or above is set to them; a gradient knows no limits but those of a relu.
  float low = -std::numeric_limits<float>::infinity();
  float high = std::numeric_limits<float>::infinity();

  bool limited() const {
    constexpr float infinity = std::numeric_limits<float>::infinity();
    return low > -infinity || high < infinity;
  }
  bool relu() const { return low == 0 && high > std::numeric_limits<float>::max(); }
};

// What is done to a row right after it was computed, while it is in cache; null: nothing.
struct RowHook {
  void (*call)(const void* context, float* row, int64_t n) = nullptr;
  const void* context = nullptr;
};

// What every feature goes through while it is gathered: max(low, x * scale + shift), with scale and
// shift of each feature; low 0 is a relu, -inf none.
struct Normalizer {
  const float *scale, *shift;
  float low;
};

// Row-major samples and which of them.
struct Samples {
  const float* source;
  const uint32_t* rows;  // null: first, first + 1, ...
  int64_t first;
};

// A small linear layer behind another: its weights (by strides), bias (null: 0) and relu.
struct NextLayer {
  int64_t out, out_step, in_step;
  const float *w, *bias;
  bool relu;
};
constexpr size_t kMostLayers = 8;  // that gather_linear takes, the first one included

namespace reference {

// The largest of n row numbers, 0 for none.
uint32_t largest_row(const uint32_t* rows, int64_t n);
// Row-major samples => rows of features. `rows` null: first, first + 1, ...
void gather(const float* source, int64_t features, const uint32_t* rows, int64_t first, int64_t n,
            float* out, int64_t stride, const Normalizer* normalizer = nullptr);
// The same with a linear layer right behind: y = relu(w x + bias), and others behind that. `out` is
// 1 to 8, `in` 64 at most (can_gather_linear); shape.n and shape.stride are those of y.
void gather_linear(const Samples& samples, const Normalizer* normalizer, const LinearShape& shape,
                   const float* w, const float* bias, bool relu, float* y,
                   std::span<const NextLayer> next = {});
// Rows of features => row-major samples.
void scatter(const float* in, int64_t features, int64_t stride, int64_t n, float* out);

// out = op(a, b, c) for n values.
void apply(ScalarOp op, const float* a, const float* b, const float* c, float* out, int64_t n);
void add_to(float* out, const float* in, int64_t n);  // out += in
double sum(const float* in, int64_t n);
double dot(const float* a, const float* b, int64_t n);

// y = w x + bias, row by row; relu; `accumulate` adds to y instead (no bias, no relu).
void linear(const LinearShape& shape, const float* w, const float* bias, const float* x, float* y,
            bool relu, bool accumulate);
// dw (strided as w) = g x^T, and, if `db`, db = row sums of g.
void linear_gradient(const LinearShape& shape, const float* g, const float* x, float* dw, float* db,
                     bool accumulate);

// Batch statistics: mean and biased variance of each channel.
void norm_statistics(const NormShape& shape, const float* x, float* mean, float* variance);
// y = (x - mean) * inverse * weight + bias, within the limits
void norm_apply(const NormShape& shape, const NormParameters& parameters, const float* x,
                const float* mean, const float* inverse, float* y, RowHook hook);
// Both in one pass over each channel. Writes mean, variance (biased) and inverse.
void norm_forward(const NormShape& shape, const NormParameters& parameters, const float* x,
                  float* mean, float* variance, float* inverse, float* y, RowHook hook);
// sum_g = sum of g', sum_gx = sum of g' (x - mean) inverse, g' = g where the relu passes.
void norm_gradient_sums(const NormShape& shape, const NormParameters& parameters, const float* x,
                        const float* g, const float* mean, const float* inverse, float* sum_g,
                        float* sum_gx);
// dx = (g' - sum_g / count - xhat * sum_gx / count) * inverse * weight
void norm_gradient_apply(const NormShape& shape, const NormParameters& parameters, const float* x,
                         const float* g, const float* mean, const float* inverse,
                         const float* sum_g, const float* sum_gx, double count, float* dx,
                         bool accumulate);
// Both in one pass over each channel; `dx` may be null.
void norm_backward(const NormShape& shape, const NormParameters& parameters, const float* x,
                   const float* g, const float* mean, const float* inverse, float* sum_g,
                   float* sum_gx, float* dx, bool accumulate);

// Softmax cross-entropy over `classes` rows. Adds to loss and correct; `g` (may be null) becomes
// scale * weight[label] * (softmax - onehot). Labels are of this batch, already
// gathered, with 16 readable values after the last one.
struct CrossEntropyResult {
  double loss = 0;
  int64_t correct = 0;
};
CrossEntropyResult cross_entropy(const float* logits, int64_t classes, int64_t stride, int64_t n,
                                 const int32_t* labels, const float* class_weights, float scale,
                                 float* g);
// How many of the samples have their largest logit, the first of equal ones, at their label.
int64_t hits(const float* logits, int64_t classes, int64_t stride, int64_t n,
             const int32_t* labels);

}  // namespace reference

using reference::CrossEntropyResult;

// The fast ones: the same functions, meaning the same.
decltype(reference::largest_row) largest_row;
decltype(reference::scatter) scatter;
decltype(reference::apply) apply;
decltype(reference::add_to) add_to;
decltype(reference::sum) sum;
decltype(reference::dot) dot;
decltype(reference::linear) linear;
decltype(reference::linear_gradient) linear_gradient;
decltype(reference::norm_statistics) norm_statistics;
decltype(reference::norm_apply) norm_apply;
decltype(reference::norm_forward) norm_forward;
decltype(reference::norm_gradient_sums) norm_gradient_sums;
decltype(reference::norm_gradient_apply) norm_gradient_apply;
decltype(reference::norm_backward) norm_backward;
decltype(reference::cross_entropy) cross_entropy;
decltype(reference::hits) hits;
void gather(const float* source, int64_t features, const uint32_t* rows, int64_t first, int64_t n,
            float* out, int64_t stride, const Normalizer* normalizer = nullptr);
inline bool can_gather_linear(int64_t out, int64_t in) { return out >= 1 && out <= 8 && in <= 64; }
void gather_linear(const Samples& samples, const Normalizer* normalizer, const LinearShape& shape,
                   const float* w, const float* bias, bool relu, float* y,
                   std::span<const NextLayer> next = {});
// Whether it takes layers of these sizes, features first, from end to end in registers. Others are
// faster one by one.
bool layers_in_registers(std::span<const int64_t> sizes);

}  // namespace mase::kernels
