// SPDX-License-Identifier: Apache-2.0
#include "mase/train/paired.h"

#include <algorithm>
#include <cmath>

#include "mase/train/metric.h"

namespace mase {

std::vector<bool> correct_rows(const Tensor& outputs, const Tensor& labels) {
  const int64_t rows = outputs.shape()[0], classes = outputs.numel() / std::max<int64_t>(1, rows);
  std::vector<bool> correct(static_cast<size_t>(rows));
  for (int64_t r = 0; r < rows; ++r)
    correct[static_cast<size_t>(r)] =
        arg_max(outputs.data<float>() + r * classes, classes) == labels.data<int32_t>()[r];
  return correct;
}

PairedDifference paired_difference(const std::vector<bool>& first,
                                   const std::vector<bool>& second) {
  MASE_CHECK(first.size() == second.size(), "{} rows beside {}", first.size(), second.size());
  if (first.empty()) return {};
  const auto n = static_cast<double>(first.size());
  double better = 0, worse = 0;  // rows that only one of the two gets right
  for (size_t r = 0; r < first.size(); ++r) {
    better += second[r] && !first[r];
    worse += !second[r] && first[r];
  }
  const double mean = (better - worse) / n;
  const double half =
      interval_95 * std::sqrt(better + worse - (better - worse) * (better - worse) / n) / n;
  return {mean, mean - half, mean + half};
}

}  // namespace mase
