// SPDX-License-Identifier: Apache-2.0
// Sums of products with exact constants as integers.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "mase/hardware/graph/builder.h"

namespace mase {

// A real number that is whole after multiplication by 2^frac.
struct Dyadic {
  int64_t mantissa = 0;  // odd, or 0
  int frac = 0;
};
Dyadic dyadic(double value, const std::string& place);  // an error for what is not finite

// A sum of such products and a constant, at the binary point where all of them are whole; at least
// `least_frac`, so that sums with fewer terms have the same.
struct SumTerm {
  IntegerId value = -1;
  double weight = 0;
};
inline constexpr int no_least_frac = std::numeric_limits<int>::min();
IntegerId lower_sum(IntegerBuilder& builder, const std::vector<SumTerm>& terms, double bias,
                    const std::string& place, int least_frac = no_least_frac);

// y[o] = sum over i of weights[i][o] x[i] + bias[o], at one common binary point per output.
std::vector<IntegerId> lower_linear(IntegerBuilder& builder, const std::vector<IntegerId>& inputs,
                                    const std::vector<std::vector<double>>& weights,
                                    const std::vector<double>& bias, const std::string& place);

}  // namespace mase
