// SPDX-License-Identifier: Apache-2.0
// The coefficient of determination: 1 - sum of squared errors / sum of squared distances of the
// targets from their mean, averaged over the outputs. Not a number if an output's targets are all
// equal. Means and squares are merged batch by batch (Chan, Golub and LeVeque, 1983), so that large
// targets do not cancel.
#include <limits>

#include "mase/train/metric.h"

namespace mase::r2_metric {
namespace {

// For each output: rows, mean, squared distances from it, squared errors.
constexpr size_t width = 4;

void add(const MetricInput& batch, const Value&, std::span<double> row) {
  const auto outputs = static_cast<size_t>(batch.outputs);
  const double rows = static_cast<double>(batch.rows);
  for (size_t o = 0; o < outputs; ++o) {
    double* own = row.data() + o * width;
    double sum = 0;
    for (size_t r = 0; r < static_cast<size_t>(batch.rows); ++r)
      sum += batch.targets[r * outputs + o];
    own[0] = rows;
    own[1] = sum / rows;
    for (size_t r = 0; r < static_cast<size_t>(batch.rows); ++r) {
      const double t = batch.targets[r * outputs + o], d = t - own[1];
      const double error = batch.logits[r * outputs + o] - t;
      own[2] += d * d;
      own[3] += error * error;
    }
  }
}

double value(std::span<const double> table, int64_t columns, const Value&) {
  const auto row = static_cast<size_t>(columns);
  double sum = 0;
  for (size_t o = 0; o < row; o += width) {
    double rows = 0, mean = 0, squares = 0, errors = 0;
    for (size_t at = o; at < table.size(); at += row) {
      const double more = table[at];
      if (more == 0) continue;
      const double d = table[at + 1] - mean, all = rows + more;
      squares += table[at + 2] + d * d * rows * more / all;
      mean += d * more / all;
      rows = all;
      errors += table[at + 3];
    }
    if (squares == 0) return std::numeric_limits<double>::quiet_NaN();
    sum += 1 - errors / squares;
  }
  return sum / (static_cast<double>(row) / width);
}

const Register<MetricRecord> registered{{
    .name = "r2",
    .summary = "coefficient of determination",
    .for_classes = false,
    .for_numbers = true,
    .columns = [](int64_t outputs) { return outputs * static_cast<int64_t>(width); },
    .add = add,
    .value = value,
}};

}  // namespace
}  // namespace mase::r2_metric
