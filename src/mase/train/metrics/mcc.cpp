// SPDX-License-Identifier: Apache-2.0
// Matthews' correlation coefficient, for any number of classes (Gorodkin, 2004): the correlation of
// given classes and labels, 0 for guessing. 0 where all rows have one label or were given one
// class. Rows without finite scores are given a class of their own, which no row has.
#include <cmath>

#include "mase/train/metric.h"

namespace mase::mcc_metric {
namespace {

// For each class: hits, rows given it, rows that have it.
constexpr size_t width = 3;

void add(const MetricInput& batch, const Value&, std::span<double> row) {
  for (int64_t r = 0; r < batch.rows; ++r) {
    const auto label = static_cast<size_t>(batch.labels[r]);
    const int64_t given = arg_max(batch.logits + r * batch.outputs, batch.outputs);
    row[width * label] += given == batch.labels[r];
    if (given >= 0) row[width * static_cast<size_t>(given) + 1] += 1;
    row[width * label + 2] += 1;
  }
}

double value(std::span<const double> table, int64_t columns, const Value&) {
  const std::vector<double> sums = column_sums(table, columns);
  double hits = 0, rows = 0, both = 0, given = 0, labelled = 0, without = 0;
  for (size_t c = 0; c < sums.size(); c += width) {
    hits += sums[c];
    rows += sums[c + 2];
    without += sums[c + 2] - sums[c + 1];
    both += sums[c + 1] * sums[c + 2];
    given += sums[c + 1] * sums[c + 1];
    labelled += sums[c + 2] * sums[c + 2];
  }
  given += without * without;
  const double spread = (rows * rows - given) * (rows * rows - labelled);
  return spread > 0 ? (hits * rows - both) / std::sqrt(spread) : 0;
}

const Register<MetricRecord> registered{{
    .name = "mcc",
    .summary = "Matthews' correlation coefficient",
    .columns = [](int64_t outputs) { return outputs * static_cast<int64_t>(width); },
    .add = add,
    .value = value,
}};

}  // namespace
}  // namespace mase::mcc_metric
