// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/dense.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>

#include "mase/base/random.h"
#include "mase/engine/kernels/double_products.h"

namespace mase {
namespace {

using kernels::DoubleOperand;
using kernels::multiply_doubles;

DoubleOperand plain(const double* data, int64_t row) { return {.doubles = data, .row = row}; }
DoubleOperand turned(const double* data, int64_t row) {
  return {.doubles = data, .row = 1, .column = row};
}

// Lower triangular L with L L' = a, in its place, and its inverse; only lower triangles are read
// and written.
bool factor_and_invert_few(double* a, double* inverse, int64_t n, int64_t stride) {
  for (int64_t j = 0; j < n; ++j) {
    double* row = a + j * stride;
    for (int64_t i = 0; i <= j; ++i) {
      const double* other = a + i * stride;
      double sum = row[i];
      for (int64_t k = 0; k < i; ++k) sum -= row[k] * other[k];
      if (i < j) {
        row[i] = sum / other[i];
      } else {
        if (!(sum > 0) || !std::isfinite(sum)) return false;
        row[j] = std::sqrt(sum);
      }
    }
  }
  for (int64_t i = 0; i < n; ++i) {
    double* row = inverse + i * stride;
    std::fill_n(row, i, 0.0);
    for (int64_t k = 0; k < i; ++k) {
      const double factor = a[i * stride + k];
      for (int64_t j = 0; j <= k; ++j) row[j] -= factor * inverse[k * stride + j];
    }
    for (int64_t j = 0; j < i; ++j) row[j] /= a[i * stride + i];
    row[i] = 1 / a[i * stride + i];
  }
  return true;
}

// The same, by halves. Upper triangles of `inverse` are zero and stay so.
bool factor_and_invert(double* a, double* inverse, int64_t n, int64_t stride, int threads) {
  if (n <= 48) return factor_and_invert_few(a, inverse, n, stride);
  const int64_t top = (n / 2 + 7) / 8 * 8, rest = n - top;
  double* low = a + top * stride;
  double* corner = low + top;
  if (!factor_and_invert(a, inverse, top, stride, threads)) return false;
  std::vector<double> piece(static_cast<size_t>(rest * top));
  // L21 = A21 L11^-T,  A22 - L21 L21'
  multiply_doubles({.rows = rest,
                    .columns = top,
                    .inner = top,
                    .a = plain(low, stride),
                    .b = turned(inverse, stride),
                    .out = piece.data(),
                    .out_row = top},
                   threads);
  for (int64_t i = 0; i < rest; ++i) std::copy_n(piece.data() + i * top, top, low + i * stride);
  multiply_doubles({.rows = rest,
                    .columns = rest,
                    .inner = top,
                    .a = plain(piece.data(), top),
                    .b = turned(piece.data(), top),
                    .out = corner,
                    .out_row = stride,
                    .factor = -1,
                    .accumulate = true},
                   threads);
  double* low_inverse = inverse + top * stride;
  if (!factor_and_invert(corner, low_inverse + top, rest, stride, threads)) return false;
  // -L22^-1 (L21 L11^-1)
  multiply_doubles({.rows = rest,
                    .columns = top,
                    .inner = top,
                    .a = plain(low, stride),
                    .b = plain(inverse, stride),
                    .out = piece.data(),
                    .out_row = top},
                   threads);
  multiply_doubles({.rows = rest,
                    .columns = top,
                    .inner = rest,
                    .a = plain(low_inverse + top, stride),
                    .b = plain(piece.data(), top),
                    .out = low_inverse,
                    .out_row = stride,
                    .factor = -1},
                   threads);
  return true;
}

// Rows of [count][n] made orthonormal, one after another, twice; rows that vanish become zero.
void orthonormalise(std::vector<double>& rows, int64_t count, int64_t n) {
  for (int64_t i = 0; i < count; ++i) {
    double* row = rows.data() + i * n;
    const double length = std::sqrt(std::inner_product(row, row + n, row, 0.0));
    for (int turn = 0; turn < 2; ++turn)
      for (int64_t j = 0; j < i; ++j) {
        const double* other = rows.data() + j * n;
        const double share = std::inner_product(row, row + n, other, 0.0);
        for (int64_t k = 0; k < n; ++k) row[k] -= share * other[k];
      }
    const double left = std::sqrt(std::inner_product(row, row + n, row, 0.0));
    const double scale = left > 1e-12 * length ? 1 / left : 0;
    for (int64_t k = 0; k < n; ++k) row[k] *= scale;
  }
}

// All eigenvectors of a small symmetric matrix by Jacobi's rotations: rows, by descending value.
Eigenvectors jacobi(Matrix a, int64_t size) {
  const auto n = static_cast<size_t>(size);
  Matrix v(n * n, 0.0);
  for (size_t i = 0; i < n; ++i) v[i * n + i] = 1;
  const auto turn = [n](double* first, double* second, size_t step, double c, double s) {
    for (size_t k = 0; k < n; ++k) {
      const double p = first[k * step], q = second[k * step];
      first[k * step] = c * p - s * q;
      second[k * step] = s * p + c * q;
    }
  };
  for (int sweep = 0; sweep < 60; ++sweep) {
    double outside = 0, inside = 0;
    for (size_t i = 0; i < n; ++i)
      for (size_t j = 0; j < n; ++j) (i == j ? inside : outside) += a[i * n + j] * a[i * n + j];
    if (outside <= 1e-28 * inside) break;
    for (size_t p = 0; p < n; ++p)
      for (size_t q = p + 1; q < n; ++q) {
        const double apq = a[p * n + q];
        if (apq == 0) continue;
        const double theta = (a[q * n + q] - a[p * n + p]) / (2 * apq);
        const double t = (theta >= 0 ? 1.0 : -1.0) / (std::fabs(theta) + std::hypot(theta, 1.0));
        const double c = 1 / std::sqrt(t * t + 1), s = t * c;
        turn(a.data() + p, a.data() + q, n, c, s);
        turn(a.data() + p * n, a.data() + q * n, 1, c, s);
        turn(v.data() + p * n, v.data() + q * n, 1, c, s);
      }
  }
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t i, size_t j) { return a[i * n + i] > a[j * n + j]; });
  Eigenvectors result;
  for (const size_t i : order) {
    result.values.push_back(a[i * n + i]);
    result.vectors.insert(result.vectors.end(), v.begin() + static_cast<std::ptrdiff_t>(i * n),
                          v.begin() + static_cast<std::ptrdiff_t>((i + 1) * n));
  }
  return result;
}

}  // namespace

bool upper_factor_of_inverse(Matrix& a, int64_t n, int threads) {
  // Rows and columns in opposite order: a = R R' with R upper triangular, and U is its inverse.
  const auto size = static_cast<size_t>(n);
  Matrix flipped(size * size), inverse(size * size, 0.0);
  std::reverse_copy(a.begin(), a.end(), flipped.begin());
  if (!factor_and_invert(flipped.data(), inverse.data(), n, n, threads)) return false;
  std::reverse_copy(inverse.begin(), inverse.end(), a.begin());
  return true;
}

std::vector<double> quadratic_forms(const std::vector<double>& differences, const Matrix& h,
                                    int64_t n, int threads) {
  const int64_t rows = n == 0 ? 0 : static_cast<int64_t>(differences.size()) / n;
  std::vector<double> sums(static_cast<size_t>(rows), 0.0);
  constexpr int64_t rows_at_once = 512, most_columns = 384;
  std::vector<double> products(static_cast<size_t>(std::min(rows, rows_at_once) * most_columns));
  for (int64_t first = 0; first < rows; first += rows_at_once) {
    const int64_t some = std::min(rows_at_once, rows - first);
    const double* d = differences.data() + first * n;
    for (int64_t column = 0; column < n; column += most_columns) {
      const int64_t width = std::min(most_columns, n - column);
      // What lies above the diagonal counts twice.
      for (const bool above : {true, false}) {
        if (above && column == 0) continue;
        multiply_doubles({.rows = some,
                          .columns = width,
                          .inner = above ? column : width,
                          .a = plain(above ? d : d + column, n),
                          .b = plain(h.data() + (above ? 0 : column) * n + column, n),
                          .out = products.data(),
                          .out_row = width},
                         threads);
        for (int64_t r = 0; r < some; ++r) {
          const double part =
              std::inner_product(products.data() + r * width, products.data() + (r + 1) * width,
                                 d + r * n + column, 0.0);
          sums[static_cast<size_t>(first + r)] += above ? 2 * part : part;
        }
      }
    }
  }
  return sums;
}

Eigenvectors largest_eigenvectors(const Matrix& a, int64_t n, int64_t count, int threads) {
  const int64_t width = std::min(n, count + 16);  // some more than asked for converge faster
  std::vector<double> space(static_cast<size_t>(width * n)), image(space.size());
  Random random(1, "largest_eigenvectors");
  for (double& value : space) value = random.normal();
  orthonormalise(space, width, n);
  Eigenvectors small;
  double last = -1;
  for (int step = 0; step < 200; ++step) {
    multiply_doubles({.rows = width,
                      .columns = n,
                      .inner = n,
                      .a = plain(space.data(), n),
                      .b = plain(a.data(), n),
                      .out = image.data(),
                      .out_row = n},
                     threads);
    Matrix inside(static_cast<size_t>(width * width));
    multiply_doubles({.rows = width,
                      .columns = width,
                      .inner = n,
                      .a = plain(image.data(), n),
                      .b = turned(space.data(), n),
                      .out = inside.data(),
                      .out_row = width},
                     threads);
    for (int64_t i = 0; i < width; ++i)  // symmetric but for rounding
      for (int64_t j = 0; j < i; ++j)
        inside[static_cast<size_t>(i * width + j)] = inside[static_cast<size_t>(j * width + i)];
    small = jacobi(std::move(inside), width);
    const double now = std::accumulate(small.values.begin(), small.values.begin() + count, 0.0);
    const bool still = std::fabs(now - last) <= 1e-7 * std::fabs(now);
    last = now;
    const std::vector<double>& from = still || width == n ? space : image;
    std::vector<double> next(space.size());
    multiply_doubles({.rows = width,
                      .columns = n,
                      .inner = width,
                      .a = plain(small.vectors.data(), width),
                      .b = plain(from.data(), n),
                      .out = next.data(),
                      .out_row = n},
                     threads);
    space = std::move(next);
    if (still || width == n) break;
    orthonormalise(space, width, n);
  }
  small.values.resize(static_cast<size_t>(count));
  space.resize(static_cast<size_t>(count * n));
  return {std::move(small.values), std::move(space)};
}

}  // namespace mase
