// SPDX-License-Identifier: Apache-2.0
// Factors, quadratic forms and eigenvectors, each held to what defines it.
#include "mase/passes/dense.h"

#include <gtest/gtest.h>

#include <cmath>

#include "mase/base/random.h"

namespace mase::dense_test {
namespace {

// Positive definite, with a spectrum that falls.
Matrix drawn_matrix(int64_t n, uint64_t seed) {
  Random random(seed, "dense");
  std::vector<double> x(static_cast<size_t>(2 * n * n));
  for (size_t i = 0; i < x.size(); ++i)
    x[i] = random.normal() / std::sqrt(1.0 + static_cast<double>(i % static_cast<size_t>(n)));
  Matrix h(static_cast<size_t>(n * n), 0.0);
  for (int64_t v = 0; v < 2 * n; ++v)
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        h[static_cast<size_t>(i * n + j)] +=
            x[static_cast<size_t>(v * n + i)] * x[static_cast<size_t>(v * n + j)];
  return h;
}

TEST(Dense, TheUpperFactorIsThatOfTheInverse) {
  for (const int64_t n : {1, 2, 7, 48, 49, 100, 230}) {
    SCOPED_TRACE(n);
    const Matrix h = drawn_matrix(n, static_cast<uint64_t>(n));
    Matrix u = h, threaded = h;
    ASSERT_TRUE(upper_factor_of_inverse(u, n));
    ASSERT_TRUE(upper_factor_of_inverse(threaded, n, 3));
    EXPECT_EQ(u, threaded);
    // U' U H = 1, and U is upper triangular with a positive diagonal.
    Matrix uh(u.size(), 0.0);
    for (int64_t i = 0; i < n; ++i) {
      EXPECT_GT(u[static_cast<size_t>(i * n + i)], 0);
      for (int64_t k = 0; k < n; ++k) {
        if (k < i) {
          EXPECT_EQ(u[static_cast<size_t>(i * n + k)], 0);
        }
        for (int64_t j = 0; j < n; ++j)
          uh[static_cast<size_t>(i * n + j)] +=
              u[static_cast<size_t>(i * n + k)] * h[static_cast<size_t>(k * n + j)];
      }
    }
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j) {
        double sum = 0;
        for (int64_t k = 0; k <= i; ++k)
          sum += u[static_cast<size_t>(k * n + i)] * uh[static_cast<size_t>(k * n + j)];
        ASSERT_NEAR(sum, i == j ? 1.0 : 0.0, 1e-8);
      }
  }
}

TEST(Dense, WhatIsNotPositiveDefiniteIsLeftAlone) {
  for (const int64_t n : {3, 90}) {
    Matrix h = drawn_matrix(n, 5);
    for (int64_t i = 0; i < n; ++i)  // the last row again as the one before
      h[static_cast<size_t>((n - 1) * n + i)] = h[static_cast<size_t>(i * n + n - 1)] =
          h[static_cast<size_t>((n - 2) * n + i)];
    h[static_cast<size_t>(n * n - 1)] = h[static_cast<size_t>((n - 2) * n + n - 2)] * 0.5;
    const Matrix before = h;
    EXPECT_FALSE(upper_factor_of_inverse(h, n));
    EXPECT_EQ(h, before);
  }
}

TEST(Dense, QuadraticFormsAreTheirSums) {
  for (const int64_t n : {1, 5, 384, 500}) {
    const int64_t rows = n == 500 ? 530 : 3;
    const Matrix h = drawn_matrix(std::min<int64_t>(n, 60), 9);
    Matrix wide(static_cast<size_t>(n * n), 0.0);
    const int64_t m = std::min<int64_t>(n, 60);
    for (int64_t i = 0; i < n; ++i)
      for (int64_t j = 0; j < n; ++j)
        wide[static_cast<size_t>(i * n + j)] = h[static_cast<size_t>(i % m * m + j % m)];
    Random random(3, "forms");
    std::vector<double> d(static_cast<size_t>(rows * n));
    for (double& value : d) value = random.normal();
    const std::vector<double> found = quadratic_forms(d, wide, n),
                              again = quadratic_forms(d, wide, n, 2);
    EXPECT_EQ(found, again);
    for (int64_t r = 0; r < rows; r += 97) {
      double wanted = 0;
      for (int64_t i = 0; i < n; ++i)
        for (int64_t j = 0; j < n; ++j)
          wanted += d[static_cast<size_t>(r * n + i)] * wide[static_cast<size_t>(i * n + j)] *
                    d[static_cast<size_t>(r * n + j)];
      EXPECT_NEAR(found[static_cast<size_t>(r)], wanted, 1e-9 * std::fabs(wanted));
    }
  }
}

TEST(Dense, EigenvectorsAreTheLargest) {
  const int64_t n = 120;
  const Matrix h = drawn_matrix(n, 11);
  // All of them, exactly, against some of them.
  const Eigenvectors all = largest_eigenvectors(h, n, n), some = largest_eigenvectors(h, n, 6);
  double trace = 0, sum = 0;
  for (int64_t i = 0; i < n; ++i) trace += h[static_cast<size_t>(i * n + i)];
  for (const double value : all.values) sum += value;
  EXPECT_NEAR(sum, trace, 1e-9 * trace);
  for (int64_t k = 0; k < 6; ++k) {
    EXPECT_NEAR(some.values[static_cast<size_t>(k)], all.values[static_cast<size_t>(k)],
                1e-5 * all.values[0]);
    const double* v = all.vectors.data() + k * n;
    double length = 0, worst = 0;
    for (int64_t i = 0; i < n; ++i) {
      length += v[i] * v[i];
      double product = 0;
      for (int64_t j = 0; j < n; ++j) product += h[static_cast<size_t>(i * n + j)] * v[j];
      worst = std::max(worst, std::fabs(product - all.values[static_cast<size_t>(k)] * v[i]));
    }
    EXPECT_NEAR(length, 1, 1e-9);
    EXPECT_LE(worst, 1e-7 * all.values[0]);
  }
}

}  // namespace
}  // namespace mase::dense_test
