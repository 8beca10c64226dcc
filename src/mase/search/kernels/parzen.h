// SPDX-License-Identifier: Apache-2.0
// The inner loops of the Parzen estimators. Results have the same bits on every instruction set and
// do not depend on the order in which kernels are stored.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mase::search::kernels {

// A term so far below the largest adds less than 3e-20 of what that one does.
constexpr double negligible = 45;

// Normal kernels over several dimensions. Of each kernel the means in all dimensions and after
// them, with a factor of the root of one half, the inverse deviations, in rows of 2 * dimensions.
struct Normals {
  size_t dimensions = 0;
  const double* rows = nullptr;
  // The same by dimension and in single precision, for points given as shares of the dimension's
  // range, in [0, 1]: (x - mu) * inverse is about share * scale - offset, neither above 71. Zeros
  // fill them up to a multiple of `padding`.
  const float* const* scale = nullptr;
  const float* const* offset = nullptr;
};
constexpr size_t padding = 16;

// Where only the point with the largest wanted[p] - out[p] is asked for: out[p] may be infinite at
// points that cannot be it.
struct Contest {
  const double* wanted = nullptr;
  double log_least_weight = 0;  // of those above zero
};

// out[p] = log(sum over i of weights[i] * exp(terms[i] - sum over d of z^2)), where z = (x[p][d] -
// mu[i][d]) * inverse[i][d], rows of x and shares are whole, those of terms `stride` apart (0: one
// for all points). Single precision finds the kernels whose terms are not negligible, a few in a
// hundred, and only those are computed.
void log_sums(const Normals& normals, const double* x, const float* shares, size_t points,
              const double* terms, size_t stride, const double* weights, size_t count,
              const Contest* contest, double* out);
// terms[i] += gain where choices[i] == choice
void add_matches(const int32_t* choices, int32_t choice, double gain, double* terms, size_t count);
// log(sum of weights[i] * exp(terms[i])), weights of at most one. Negligible terms are left out.
double log_sum_exp(const double* terms, const double* weights, size_t count);

}  // namespace mase::search::kernels
