// SPDX-License-Identifier: Apache-2.0
// The mean loss of the rows, as the engine computed it: where classes have weights, their weighted
// mean over the split, however it was cut into batches.
#include "mase/train/metric.h"

namespace mase::loss_metric {
namespace {

void add(const MetricInput& batch, const Value&, std::span<double> row) {
  // Rows of classes without weight: the engine gives the sum.
  row[0] = batch.loss_weight != 0 ? batch.loss * batch.loss_weight : batch.loss;
  row[1] = batch.loss_weight;
}

double value(std::span<const double> table, int64_t columns, const Value&) {
  const std::vector<double> sums = column_sums(table, columns);
  return sums[1] > 0 ? sums[0] / sums[1] : 0;
}

const Register<MetricRecord> registered{{
    .name = "loss",
    .summary = "mean loss over the rows",
    .for_numbers = true,
    .higher_is_better = false,
    .needs_outputs = false,
    .columns = [](int64_t) -> int64_t { return 2; },
    .add = add,
    .value = value,
}};

}  // namespace
}  // namespace mase::loss_metric
