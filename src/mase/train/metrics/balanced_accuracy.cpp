// SPDX-License-Identifier: Apache-2.0
// Balanced accuracy: the mean over the classes that occur of the share of their rows that was
// classified rightly, so that a frequent class does not hide a rare one.
#include "mase/train/metric.h"

namespace mase::balanced_accuracy_metric {
namespace {

// For each class its hits and its rows.
void add(const MetricInput& batch, const Value&, std::span<double> row) {
  for (int64_t r = 0; r < batch.rows; ++r) {
    const auto label = static_cast<size_t>(batch.labels[r]);
    row[2 * label] += arg_max(batch.logits + r * batch.outputs, batch.outputs) == batch.labels[r];
    row[2 * label + 1] += 1;
  }
}

double value(std::span<const double> table, int64_t columns, const Value&) {
  const std::vector<double> sums = column_sums(table, columns);
  double shares = 0, classes = 0;
  for (size_t c = 0; c < sums.size(); c += 2) {
    if (sums[c + 1] == 0) continue;
    shares += sums[c] / sums[c + 1];
    classes += 1;
  }
  return classes > 0 ? shares / classes : 0;
}

const Register<MetricRecord> registered{{
    .name = "balanced_accuracy",
    .aliases = {"balanced_acc"},
    .summary = "mean over the classes of the share classified rightly",
    .curve = "balanced_acc",
    .columns = [](int64_t outputs) { return 2 * outputs; },
    .add = add,
    .value = value,
}};

}  // namespace
}  // namespace mase::balanced_accuracy_metric
