// SPDX-License-Identifier: Apache-2.0
// Mean absolute error and the root of the mean squared error, over all rows and outputs.
#include <cmath>

#include "mase/train/metric.h"

namespace mase::mean_errors_metric {
namespace {

enum class Power { one, two };

template <Power kPower>
void add(const MetricInput& batch, const Value&, std::span<double> row) {
  for (int64_t i = 0; i < batch.rows * batch.outputs; ++i) {
    const double d = static_cast<double>(batch.logits[i]) - batch.targets[i];
    row[0] += kPower == Power::one ? std::abs(d) : d * d;
  }
  row[1] = static_cast<double>(batch.rows * batch.outputs);
}

template <Power kPower>
double value(std::span<const double> table, int64_t columns, const Value&) {
  const std::vector<double> sums = column_sums(table, columns);
  const double mean = sums[1] > 0 ? sums[0] / sums[1] : 0;
  return kPower == Power::one ? mean : std::sqrt(mean);
}

template <Power kPower>
MetricRecord record(const char* name, const char* summary) {
  return {.name = name,
          .summary = summary,
          .for_classes = false,
          .for_numbers = true,
          .higher_is_better = false,
          .columns = [](int64_t) -> int64_t { return 2; },
          .add = add<kPower>,
          .value = value<kPower>};
}

const Register<MetricRecord> mae{record<Power::one>("mae", "mean absolute error")};
const Register<MetricRecord> rmse{record<Power::two>("rmse", "root of the mean squared error")};

}  // namespace
}  // namespace mase::mean_errors_metric
