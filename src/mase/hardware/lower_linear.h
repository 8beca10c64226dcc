// SPDX-License-Identifier: Apache-2.0
// Sums of products with exact constants as integers.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mase/hardware/builder.h"

namespace mase {

// A real number that is whole after multiplication by 2^frac.
struct Dyadic {
  int64_t mantissa = 0;  // odd, or 0
  int frac = 0;
};
Dyadic dyadic(double value, const std::string& place);  // an error for what is not finite

// y[o] = sum over i of weights[i][o] x[i] + bias[o], at one common binary point per output.
std::vector<IntegerId> lower_linear(IntegerBuilder& builder, const std::vector<IntegerId>& inputs,
                                    const std::vector<std::vector<double>>& weights,
                                    const std::vector<double>& bias, const std::string& place);

}  // namespace mase
