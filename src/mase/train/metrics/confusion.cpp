// SPDX-License-Identifier: Apache-2.0
// Confusion matrix: rows are true classes, columns predicted ones. Of many classes nearly all cells
// are empty: then it is the list of [true class, predicted class, rows] that are not. What has no
// scores is predicted to be nothing and stands nowhere.
#include <map>

#include "mase/train/metric.h"

namespace mase::confusion_metric {
namespace {

constexpr int64_t most_classes_of_a_matrix = 100;

Value compute(const MetricInput& input) {
  std::map<std::pair<int64_t, int64_t>, int64_t> counts;
  for (int64_t row = 0; row < input.rows; ++row) {
    const int64_t predicted = arg_max(input.logits + row * input.outputs, input.outputs);
    if (predicted >= 0) ++counts[{input.labels[row], predicted}];
  }
  List cells;
  if (input.outputs > most_classes_of_a_matrix) {
    for (const auto& [cell, count] : counts)
      cells.push_back(Value::of(std::vector<int64_t>{cell.first, cell.second, count}));
    return Dict{{"cells", std::move(cells)}};
  }
  std::vector<std::vector<int64_t>> matrix(
      static_cast<size_t>(input.outputs), std::vector<int64_t>(static_cast<size_t>(input.outputs)));
  for (const auto& [cell, count] : counts)
    matrix[static_cast<size_t>(cell.first)][static_cast<size_t>(cell.second)] = count;
  for (const std::vector<int64_t>& row : matrix) cells.push_back(Value::of(row));
  return cells;
}

const Register<MetricRecord> registered{
    {.name = "confusion", .summary = "true class by predicted class", .compute = compute}};

}  // namespace
}  // namespace mase::confusion_metric
