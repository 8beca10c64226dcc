// SPDX-License-Identifier: Apache-2.0
// The plain kernels: loops a reader can check, with sums in double precision.
#include <algorithm>
#include <cmath>
#include <vector>

#include "mase/base/error.h"
#include "mase/engine/kernels/kernels.h"
#include "mase/ir/scalar.h"

namespace mase::kernels::reference {

uint32_t largest_row(const uint32_t* rows, int64_t n) {
  uint32_t largest = 0;
  for (int64_t i = 0; i < n; ++i) largest = std::max(largest, rows[i]);
  return largest;
}

void gather(const float* source, int64_t features, const uint32_t* rows, int64_t first, int64_t n,
            float* out, int64_t stride, const Normalizer* normalizer) {
  for (int64_t b = 0; b < n; ++b) {
    const float* row = source + (rows ? static_cast<int64_t>(rows[b]) : first + b) * features;
    for (int64_t f = 0; f < features; ++f) {
      float value = row[f];
      if (normalizer) {
        value = std::fma(value, normalizer->scale[f], normalizer->shift[f]);
        value = value < normalizer->low ? normalizer->low : value;
      }
      out[f * stride + b] = value;
    }
  }
}

void gather_linear(const Samples& samples, const Normalizer* normalizer, const LinearShape& s,
                   const float* w, const float* bias, bool relu, float* y,
                   std::span<const NextLayer> next) {
  std::vector<float> x(static_cast<size_t>(s.in * s.stride)), result;
  reference::gather(samples.source, s.in, samples.rows, samples.first, s.n, x.data(), s.stride,
                    normalizer);
  LinearShape shape = s;
  const auto multiply = [&](const float* weights, const float* shift, bool limit) {
    result.assign(static_cast<size_t>(shape.out * s.stride), 0.0f);
    reference::linear(shape, weights, shift, x.data(), result.data(), limit, false);
    x.swap(result);
  };
  multiply(w, bias, relu);
  for (const NextLayer& layer : next) {
    shape = {layer.out, shape.out, layer.out_step, layer.in_step, s.stride, s.n};
    multiply(layer.w, layer.bias, layer.relu);
  }
  for (int64_t o = 0; o < shape.out; ++o)
    std::copy_n(x.data() + o * s.stride, s.n, y + o * s.stride);
}

void scatter(const float* in, int64_t features, int64_t stride, int64_t n, float* out) {
  for (int64_t b = 0; b < n; ++b)
    for (int64_t f = 0; f < features; ++f) out[b * features + f] = in[f * stride + b];
}

void apply(ScalarOp op, const float* a, const float* b, const float* c, float* out, int64_t n) {
  const bool leaf = op == ScalarOp::operand || op == ScalarOp::constant;  // copied
  for (int64_t i = 0; i < n; ++i)
    out[i] =
        leaf ? a[i] : static_cast<float>(scalar_result(op, a[i], b ? b[i] : 0.0, c ? c[i] : 0.0));
}

void add_to(float* out, const float* in, int64_t n) {
  for (int64_t i = 0; i < n; ++i) out[i] += in[i];
}

double sum(const float* in, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += in[i];
  return total;
}

double dot(const float* a, const float* b, int64_t n) {
  double total = 0;
  for (int64_t i = 0; i < n; ++i) total += static_cast<double>(a[i]) * b[i];
  return total;
}

void linear(const LinearShape& s, const float* w, const float* bias, const float* x, float* y,
            bool relu, bool accumulate) {
  for (int64_t o = 0; o < s.out; ++o)
    for (int64_t b = 0; b < s.n; ++b) {
      double total = bias && !accumulate ? bias[o] : 0;
      for (int64_t i = 0; i < s.in; ++i)
        total += static_cast<double>(w[o * s.out_step + i * s.in_step]) * x[i * s.stride + b];
      float& target = y[o * s.stride + b];
      if (accumulate) total += target;
      target = relu && total < 0 ? 0.0f : static_cast<float>(total);
    }
}

void linear_gradient(const LinearShape& s, const float* g, const float* x, float* dw, float* db,
                     bool accumulate) {
  for (int64_t o = 0; o < s.out; ++o) {
    for (int64_t i = 0; i < s.in; ++i) {
      float& target = dw[o * s.out_step + i * s.in_step];
      const double total = dot(g + o * s.stride, x + i * s.stride, s.n);
      target = static_cast<float>(accumulate ? target + total : total);
    }
    if (!db) continue;
    const double total = sum(g + o * s.stride, s.n);
    db[o] = static_cast<float>(accumulate ? db[o] + total : total);
  }
}

void norm_statistics(const NormShape& s, const float* x, float* mean, float* variance) {
  const double count = static_cast<double>(s.positions * s.n);
  for (int64_t c = 0; c < s.channels; ++c) {
    const float* rows = x + c * s.positions * s.stride;
    double total = 0, squares = 0;
    for (int64_t p = 0; p < s.positions; ++p) total += sum(rows + p * s.stride, s.n);
    const double middle = total / count;
    for (int64_t p = 0; p < s.positions; ++p)
      for (int64_t b = 0; b < s.n; ++b) {
        const double d = rows[p * s.stride + b] - middle;
        squares += d * d;
      }
    mean[c] = static_cast<float>(middle);
    variance[c] = static_cast<float>(squares / count);
  }
}

namespace {

float weight_of(const NormParameters& p, int64_t c) { return p.weight ? p.weight[c] : 1.0f; }
float bias_of(const NormParameters& p, int64_t c) { return p.bias ? p.bias[c] : 0.0f; }

// The one formula of the result: forward and backward must agree on where the relu passes.
float normalized(float x, float mean, float scale, float bias) { return (x - mean) * scale + bias; }

}  // namespace

void norm_apply(const NormShape& s, const NormParameters& parameters, const float* x,
                const float* mean, const float* inverse, float* y, RowHook hook) {
  for (int64_t c = 0; c < s.channels; ++c) {
    const float scale = inverse[c] * weight_of(parameters, c), bias = bias_of(parameters, c);
    for (int64_t p = 0; p < s.positions; ++p) {
      const float* from = x + (c * s.positions + p) * s.stride;
      float* to = y + (c * s.positions + p) * s.stride;
      for (int64_t b = 0; b < s.n; ++b) {
        const float value = normalized(from[b], mean[c], scale, bias);
        to[b] = value < parameters.low    ? parameters.low
                : value > parameters.high ? parameters.high
                                          : value;
      }
      if (hook.call) hook.call(hook.context, to, s.n);
    }
  }
}

void norm_forward(const NormShape& s, const NormParameters& parameters, const float* x, float* mean,
                  float* variance, float* inverse, float* y, RowHook hook) {
  reference::norm_statistics(s, x, mean, variance);
  for (int64_t c = 0; c < s.channels; ++c)
    inverse[c] = static_cast<float>(1.0 / std::sqrt(variance[c] + parameters.eps));
  reference::norm_apply(s, parameters, x, mean, inverse, y, hook);
}

void norm_gradient_sums(const NormShape& s, const NormParameters& parameters, const float* x,
                        const float* g, const float* mean, const float* inverse, float* sum_g,
                        float* sum_gx) {
  for (int64_t c = 0; c < s.channels; ++c) {
    const float scale = inverse[c] * weight_of(parameters, c), bias = bias_of(parameters, c);
    double total = 0, product = 0;
    for (int64_t p = 0; p < s.positions; ++p)
      for (int64_t b = 0; b < s.n; ++b) {
        const int64_t at = (c * s.positions + p) * s.stride + b;
        if (parameters.relu() && !(normalized(x[at], mean[c], scale, bias) > 0)) continue;
        total += g[at];
        product += static_cast<double>(g[at]) * (x[at] - mean[c]) * inverse[c];
      }
    sum_g[c] = static_cast<float>(total);
    sum_gx[c] = static_cast<float>(product);
  }
}

void norm_gradient_apply(const NormShape& s, const NormParameters& parameters, const float* x,
                         const float* g, const float* mean, const float* inverse,
                         const float* sum_g, const float* sum_gx, double count, float* dx,
                         bool accumulate) {
  for (int64_t c = 0; c < s.channels; ++c) {
    const float scale = inverse[c] * weight_of(parameters, c), bias = bias_of(parameters, c);
    const double a = count > 0 ? sum_g[c] / count : 0, b = count > 0 ? sum_gx[c] / count : 0;
    for (int64_t p = 0; p < s.positions; ++p)
      for (int64_t i = 0; i < s.n; ++i) {
        const int64_t at = (c * s.positions + p) * s.stride + i;
        const bool passes = !parameters.relu() || normalized(x[at], mean[c], scale, bias) > 0;
        const double xhat = (x[at] - mean[c]) * inverse[c];
        const double d = ((passes ? g[at] : 0) - a - xhat * b) * scale;
        dx[at] = static_cast<float>(accumulate ? dx[at] + d : d);
      }
  }
}

void norm_backward(const NormShape& s, const NormParameters& parameters, const float* x,
                   const float* g, const float* mean, const float* inverse, float* sum_g,
                   float* sum_gx, float* dx, bool accumulate) {
  reference::norm_gradient_sums(s, parameters, x, g, mean, inverse, sum_g, sum_gx);
  if (dx)
    reference::norm_gradient_apply(s, parameters, x, g, mean, inverse, sum_g, sum_gx,
                                   static_cast<double>(s.positions * s.n), dx, accumulate);
}

namespace {

// The class with the largest logit; -1 if one is NaN or the largest is infinite.
int64_t chosen_class(const float* logits, int64_t classes, int64_t stride) {
  int64_t best = 0;
  for (int64_t c = 0; c < classes; ++c) {
    if (std::isnan(logits[c * stride])) return -1;
    if (logits[c * stride] > logits[best * stride]) best = c;
  }
  return std::isfinite(logits[best * stride]) ? best : -1;
}

}  // namespace

int64_t hits(const float* logits, int64_t classes, int64_t stride, int64_t n,
             const int32_t* labels) {
  int64_t count = 0;
  for (int64_t b = 0; b < n; ++b) count += chosen_class(logits + b, classes, stride) == labels[b];
  return count;
}

CrossEntropyResult cross_entropy(const float* logits, int64_t classes, int64_t stride, int64_t n,
                                 const int32_t* labels, const float* class_weights, float scale,
                                 float* g) {
  CrossEntropyResult result;
  for (int64_t b = 0; b < n; ++b) {
    int64_t best = 0;
    for (int64_t c = 1; c < classes; ++c)
      if (logits[c * stride + b] > logits[best * stride + b]) best = c;
    const double top = logits[best * stride + b];
    double total = 0;
    for (int64_t c = 0; c < classes; ++c) total += std::exp(logits[c * stride + b] - top);
    const int32_t label = labels[b];
    const double weight = label < 0 ? 0.0 : class_weights ? class_weights[label] : 1.0;
    result.loss += weight * (std::log(total) + top - logits[std::max(label, 0) * stride + b]);
    result.correct += chosen_class(logits + b, classes, stride) == label;
    if (!g) continue;
    for (int64_t c = 0; c < classes; ++c)
      g[c * stride + b] = static_cast<float>(
          weight * scale *
          (std::exp(logits[c * stride + b] - top) / total - (c == label ? 1.0 : 0.0)));
  }
  return result;
}

}  // namespace mase::kernels::reference
