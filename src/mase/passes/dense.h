// SPDX-License-Identifier: Apache-2.0
// Small dense linear algebra in double precision, row-major: what methods on Hessians need.
#pragma once

#include <cstdint>
#include <vector>

namespace mase {

using Matrix = std::vector<double>;  // n x n, row-major

// Lower triangular L with L L' = a; false if the matrix is not positive definite.
bool cholesky(Matrix& a, int64_t n);
// The inverse of a positive definite matrix; false if it is not.
bool invert_positive(Matrix& a, int64_t n);
// Upper triangular U with U' U = the inverse of `a` (torch.linalg.cholesky(inv, upper=True)); false
// if `a` is not positive definite.
bool upper_factor_of_inverse(Matrix& a, int64_t n);
// sum over i, j of d_i h_ij d_j.
double quadratic_form(const double* d, const Matrix& h, int64_t n);

}  // namespace mase
