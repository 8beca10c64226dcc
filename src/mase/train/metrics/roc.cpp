// SPDX-License-Identifier: Apache-2.0
// Per-class ROC, one against the rest, over the softmax probabilities, with the exact area. A class
// without rows on one side has no area, and no class has one where a row has no scores: null.
#include <algorithm>
#include <cmath>

#include "mase/train/metric.h"

namespace mase::roc_metric {
namespace {

List numbers(const std::vector<double>& values) { return List(values.begin(), values.end()); }

Value compute(const MetricInput& input) {
  const size_t rows = static_cast<size_t>(input.rows), outputs = static_cast<size_t>(input.outputs);
  std::vector<double> shift(rows), total(rows);
  for (size_t row = 0; row < rows; ++row) {
    const float* logits = input.logits + row * outputs;
    shift[row] = *std::max_element(logits, logits + outputs);
    for (size_t c = 0; c < outputs; ++c) total[row] += std::exp(logits[c] - shift[row]);
  }
  List curves;
  std::vector<float> scores(rows);
  std::vector<bool> positive(rows);
  for (size_t c = 0; c < outputs; ++c) {
    for (size_t row = 0; row < rows; ++row) {
      scores[row] =
          static_cast<float>(std::exp(input.logits[row * outputs + c] - shift[row]) / total[row]);
      positive[row] = static_cast<size_t>(input.labels[row]) == c;
    }
    const RocCurve curve = roc_curve(scores, positive);
    Value area;
    if (std::isfinite(curve.auc)) area = curve.auc;
    curves.push_back(Dict{{"class", static_cast<int64_t>(c)},
                          {"auc", area},
                          {"fpr", numbers(curve.fpr)},
                          {"tpr", numbers(curve.tpr)}});
  }
  return curves;
}

const Register<MetricRecord> registered{
    {.name = "roc", .summary = "ROC curve and area per class", .compute = compute}};

}  // namespace
}  // namespace mase::roc_metric
