// SPDX-License-Identifier: Apache-2.0
// Micro accuracy: the share of rows whose largest logit is the label's.
#include "mase/train/metric.h"

namespace mase::accuracy_metric {
namespace {

void add(const MetricInput& batch, const Value&, std::span<double> row) {
  row[0] = static_cast<double>(batch.correct);
  row[1] = static_cast<double>(batch.rows);
}

double value(std::span<const double> table, int64_t columns, const Value&) {
  const std::vector<double> sums = column_sums(table, columns);
  return sums[1] > 0 ? sums[0] / sums[1] : 0;
}

const Register<MetricRecord> registered{{
    .name = "accuracy",
    .aliases = {"acc"},
    .summary = "share of rows classified rightly",
    .curve = "acc",
    .needs_outputs = false,
    .columns = [](int64_t) -> int64_t { return 2; },
    .add = add,
    .value = value,
}};

}  // namespace
}  // namespace mase::accuracy_metric
