// SPDX-License-Identifier: Apache-2.0
// Confusion matrix: rows are true classes, columns predicted ones. What has no scores is predicted
// to be nothing and stands nowhere.
#include "mase/train/metric.h"

namespace mase::confusion_metric {
namespace {

Value compute(const MetricInput& input) {
  const size_t classes = static_cast<size_t>(input.outputs);
  std::vector<int64_t> counts(classes * classes);
  for (int64_t row = 0; row < input.rows; ++row) {
    const int64_t predicted = arg_max(input.logits + row * input.outputs, input.outputs);
    if (predicted < 0) continue;
    ++counts[static_cast<size_t>(input.labels[row]) * classes + static_cast<size_t>(predicted)];
  }
  List matrix;
  for (size_t c = 0; c < classes; ++c)
    matrix.push_back(Value::of(
        std::vector<int64_t>(counts.begin() + static_cast<std::ptrdiff_t>(c * classes),
                             counts.begin() + static_cast<std::ptrdiff_t>((c + 1) * classes))));
  return matrix;
}

const Register<MetricRecord> registered{
    {.name = "confusion", .summary = "true class by predicted class", .compute = compute}};

}  // namespace
}  // namespace mase::confusion_metric
