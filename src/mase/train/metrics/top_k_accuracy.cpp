// SPDX-License-Identifier: Apache-2.0
// Top-k accuracy for one k: the label is among the k largest logits. Equal logits count against the
// network.
#include "mase/base/fields.h"
#include "mase/train/metric.h"

namespace mase::top_k_accuracy_metric {
namespace {

void add(const MetricInput& batch, const Value& options, std::span<double> row) {
  const int64_t k = options["k"].as_int();
  for (int64_t r = 0; r < batch.rows; ++r) {
    row[0] += among_largest(batch.logits + r * batch.outputs, batch.outputs, batch.labels[r], k);
    row[1] += 1;
  }
}

double value(std::span<const double> table, int64_t columns, const Value&) {
  const std::vector<double> sums = column_sums(table, columns);
  return sums[1] > 0 ? sums[0] / sums[1] : 0;
}

const Register<MetricRecord> registered{{
    .name = "top_k_accuracy",
    .summary = "share of labels among the k largest outputs; equal outputs count against it",
    .options = {{integer_field("k", "outputs that may hold the label", 2).from(1)}},
    .columns = [](int64_t) -> int64_t { return 2; },
    .add = add,
    .value = value,
    .curve_of =
        [](const Value& options) { return fmt::format("top{}_acc", options["k"].as_int()); },
}};

}  // namespace
}  // namespace mase::top_k_accuracy_metric
