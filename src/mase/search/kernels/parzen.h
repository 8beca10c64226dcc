// SPDX-License-Identifier: Apache-2.0
// The inner loops of the Parzen estimators. Results have the same bits on every instruction set and
// do not depend on the order in which kernels are stored.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mase::search::kernels {

// A term so far below the largest adds less than 3e-20 of what that one does.
constexpr double negligible = 45;

// Normal kernels over several dimensions: for each dimension the means and, with a factor of the
// root of one half, the inverse deviations of all of them.
struct Normals {
  size_t dimensions = 0;
  const double* const* mu = nullptr;
  const double* const* inverse = nullptr;
};
// terms[p][i] -= sum over d of ((x[p][d] - mu[d][i]) * inverse[d][i])^2, one dimension after the
// other; rows of terms are `stride` apart, those of x are whole. A term that has fallen to
// `negligible` below the largest of its row may be left there, with dimensions left out.
void subtract_squares(const Normals& normals, const double* x, size_t points, double* terms,
                      size_t stride, size_t count);
// terms[i] += gain where choices[i] == choice
void add_matches(const int32_t* choices, int32_t choice, double gain, double* terms, size_t count);
// log(sum of weights[i] * exp(terms[i])), weights of at most one. Negligible terms are left out.
double log_sum_exp(const double* terms, const double* weights, size_t count);

}  // namespace mase::search::kernels
