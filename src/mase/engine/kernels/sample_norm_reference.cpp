// SPDX-License-Identifier: Apache-2.0
// The plain twins of sample_norm.cpp, in double precision.
#include <cmath>

#include "mase/engine/kernels/sample_norm.h"

namespace mase::kernels::reference {
namespace {

struct Moments {
  double mean, inverse;
};

Moments moments(const SampleRange& r, const float* x, double eps) {
  double total = 0, squares = 0;
  for (int64_t i = 0; i < r.length; ++i) total += x[i * r.step];
  const double mean = total / static_cast<double>(r.length);
  for (int64_t i = 0; i < r.length; ++i) squares += (x[i * r.step] - mean) * (x[i * r.step] - mean);
  return {mean, 1 / std::sqrt(squares / static_cast<double>(r.length) + eps)};
}

}  // namespace

void softmax(const SampleRange& r, const float* x, float* y, bool logarithm) {
  for (int64_t b = 0; b < r.n; ++b) {
    const auto at = [&](int64_t k) { return k * r.step + b; };
    float top = -INFINITY;
    for (int64_t k = 0; k < r.length; ++k)
      top = x[at(k)] > top || std::isnan(x[at(k)]) ? x[at(k)] : top;
    if (top == -INFINITY) top = 0;
    double total = 0;
    for (int64_t k = 0; k < r.length; ++k) total += std::exp(x[at(k)] - top);
    const double log_total = std::log(total);
    for (int64_t k = 0; k < r.length; ++k)
      y[at(k)] = static_cast<float>(logarithm ? x[at(k)] - top - log_total
                                              : std::exp(x[at(k)] - top) / total);
  }
}

void softmax_gradient(const SampleRange& r, const float* y, const float* g, float* dx,
                      bool logarithm, bool accumulate) {
  for (int64_t b = 0; b < r.n; ++b) {
    const auto at = [&](int64_t k) { return k * r.step + b; };
    double total = 0;
    for (int64_t k = 0; k < r.length; ++k)
      total += logarithm ? g[at(k)] : static_cast<double>(g[at(k)]) * y[at(k)];
    for (int64_t k = 0; k < r.length; ++k) {
      const double d =
          logarithm ? g[at(k)] - std::exp(y[at(k)]) * total : (g[at(k)] - total) * y[at(k)];
      dx[at(k)] = static_cast<float>(accumulate ? dx[at(k)] + d : d);
    }
  }
}

void layer_norm(const SampleRange& r, const float* x, const float* weight, const float* bias,
                double eps, float* y) {
  for (int64_t b = 0; b < r.n; ++b) {
    const Moments m = moments(r, x + b, eps);
    for (int64_t i = 0; i < r.length; ++i)
      y[i * r.step + b] =
          static_cast<float>((x[i * r.step + b] - m.mean) * m.inverse * (weight ? weight[i] : 1.0) +
                             (bias ? bias[i] : 0.0));
  }
}

void layer_norm_gradient(const SampleRange& r, const float* x, const float* g, const float* weight,
                         double eps, float* dx, bool accumulate, const LayerNormSums& sums) {
  const auto count = static_cast<double>(r.length);
  for (int64_t b = 0; b < r.n; ++b) {
    const Moments m = moments(r, x + b, eps);
    double total = 0, product = 0;
    for (int64_t i = 0; i < r.length; ++i) {
      const double xhat = (x[i * r.step + b] - m.mean) * m.inverse, up = g[i * r.step + b];
      sums.weight[i] += up * xhat;
      sums.bias[i] += up;
      total += up * (weight ? weight[i] : 1.0);
      product += up * (weight ? weight[i] : 1.0) * xhat;
    }
    for (int64_t i = 0; dx && i < r.length; ++i) {
      const int64_t at = i * r.step + b;
      const double xhat = (x[at] - m.mean) * m.inverse;
      const double d =
          m.inverse * (g[at] * (weight ? weight[i] : 1.0) - (total + xhat * product) / count);
      dx[at] = static_cast<float>(accumulate ? dx[at] + d : d);
    }
  }
}

}  // namespace mase::kernels::reference
