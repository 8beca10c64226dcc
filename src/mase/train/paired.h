// SPDX-License-Identifier: Apache-2.0
// Two networks on the same rows: the difference of their accuracies is known better than either.
#pragma once

#include <vector>

#include "mase/base/tensor.h"

namespace mase {

// Half the width of a 95 % interval of a normal distribution with deviation 1.
inline constexpr double interval_95 = 1.959963984540054;

// Which rows of outputs have their label as class.
std::vector<bool> correct_rows(const Tensor& outputs, const Tensor& labels);

struct PairedDifference {
  double mean = 0, low = 0, high = 0;  // second less first, with its 95 % interval
};
PairedDifference paired_difference(const std::vector<bool>& first, const std::vector<bool>& second);

}  // namespace mase
