// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/dense.h"

#include <cmath>
#include <cstddef>

namespace mase {

bool cholesky(Matrix& a, int64_t n) {
  for (int64_t j = 0; j < n; ++j) {
    double* row_j = a.data() + j * n;
    for (int64_t i = 0; i <= j; ++i) {
      const double* row_i = a.data() + i * n;
      double sum = row_j[i];
      for (int64_t k = 0; k < i; ++k) sum -= row_j[k] * row_i[k];
      if (i < j) {
        row_j[i] = sum / row_i[i];
      } else {
        if (!(sum > 0) || !std::isfinite(sum)) return false;
        row_j[j] = std::sqrt(sum);
      }
    }
    for (int64_t i = j + 1; i < n; ++i) row_j[i] = 0;
  }
  return true;
}

bool invert_positive(Matrix& a, int64_t n) {
  if (!cholesky(a, n)) return false;
  // Rows of the inverse of L, in place; then the product of its transpose with it.
  for (int64_t i = 0; i < n; ++i) {
    double* row = a.data() + i * n;
    const double diagonal = row[i];
    std::vector<double> result(static_cast<size_t>(i) + 1, 0.0);
    for (int64_t k = 0; k < i; ++k) {
      const double* inner = a.data() + k * n;  // already inverted
      const double factor = row[k];
      if (factor == 0) continue;
      for (int64_t j = 0; j <= k; ++j) result[static_cast<size_t>(j)] -= factor * inner[j];
    }
    for (int64_t j = 0; j < i; ++j) row[j] = result[static_cast<size_t>(j)] / diagonal;
    row[i] = 1 / diagonal;
  }
  Matrix inverse(a.size(), 0.0);
  for (int64_t k = 0; k < n; ++k) {
    const double* row = a.data() + k * n;
    for (int64_t i = 0; i <= k; ++i)
      for (int64_t j = 0; j <= i; ++j) inverse[static_cast<size_t>(i * n + j)] += row[i] * row[j];
  }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = i + 1; j < n; ++j)
      inverse[static_cast<size_t>(i * n + j)] = inverse[static_cast<size_t>(j * n + i)];
  a = std::move(inverse);
  return true;
}

bool upper_factor_of_inverse(Matrix& a, int64_t n) {
  if (!invert_positive(a, n) || !cholesky(a, n)) return false;
  for (int64_t i = 0; i < n; ++i)
    for (int64_t j = 0; j < i; ++j) {
      a[static_cast<size_t>(j * n + i)] = a[static_cast<size_t>(i * n + j)];
      a[static_cast<size_t>(i * n + j)] = 0;
    }
  return true;
}

double quadratic_form(const double* d, const Matrix& h, int64_t n) {
  double sum = 0;
  for (int64_t i = 0; i < n; ++i) {
    if (d[i] == 0) continue;
    const double* row = h.data() + i * n;
    double inner = 0;
    for (int64_t j = 0; j < n; ++j) inner += row[j] * d[j];
    sum += d[i] * inner;
  }
  return sum;
}

}  // namespace mase
