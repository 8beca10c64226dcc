// SPDX-License-Identifier: Apache-2.0
// Small dense linear algebra in double precision, row-major: what methods on Hessians need. Made of
// products of matrices, so it runs at their speed. Sums have one order, whatever the threads.
#pragma once

#include <cstdint>
#include <vector>

namespace mase {

using Matrix = std::vector<double>;  // n x n, row-major

// Upper triangular U with U' U = the inverse of `a` (torch.linalg.cholesky(inv, upper=True)); false
// if `a` is not positive definite, and nothing is changed.
bool upper_factor_of_inverse(Matrix& a, int64_t n, int threads = 1);
// sum over i, j of d_i h_ij d_j for every row d of `differences`; `h` is symmetric.
std::vector<double> quadratic_forms(const std::vector<double>& differences, const Matrix& h,
                                    int64_t n, int threads = 1);

// The `count` largest eigenvalues of a symmetric matrix without negative ones and their vectors,
// rows of [count][n], by iterated products with a subspace that is drawn.
struct Eigenvectors {
  std::vector<double> values, vectors;
};
Eigenvectors largest_eigenvectors(const Matrix& a, int64_t n, int64_t count, int threads = 1);

}  // namespace mase
