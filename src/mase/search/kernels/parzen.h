// SPDX-License-Identifier: Apache-2.0
// The inner loops of the Parzen estimators. Results have the same bits on every instruction set and
// do not depend on the order in which kernels are stored.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mase::search::kernels {

// terms[i] -= ((x - mu[i]) * inverse[i])^2 / 2
void add_normals(double x, const double* mu, const double* inverse, double* terms, size_t count);
// terms[i] += gain where choices[i] == choice
void add_matches(const int32_t* choices, int32_t choice, double gain, double* terms, size_t count);
// log(sum of exp(terms)). A term 45 below the largest adds less than 3e-20 of it and is left out.
double log_sum_exp(const double* terms, size_t count);

}  // namespace mase::search::kernels
