// SPDX-License-Identifier: Apache-2.0
// Per-class ROC, one against the rest, over the softmax probabilities, with the exact area. A class
// without rows on one side has no area, and no class has one where a row has no scores: null. The
// background that is left at the signal efficiencies jet papers quote is that of the whole curve;
// its points are thinned, for drawing, and left out where there are too many classes to draw.
#include <algorithm>
#include <cmath>
#include <limits>

#include "mase/train/metric.h"

namespace mase::roc_metric {
namespace {

constexpr size_t most_drawn_points = 200, most_drawn_classes = 100;
constexpr double working_points[] = {0.3, 0.5, 0.8};

List thinned(const std::vector<double>& values) {
  List list;
  const size_t kept = std::min(most_drawn_points, values.size());
  for (size_t i = 0; i < kept; ++i)
    list.push_back(values[kept < 2 ? 0 : i * (values.size() - 1) / (kept - 1)]);
  return list;
}

// Background efficiency where the signal's is `signal`: between the points of the curve next to it.
double background_at(const RocCurve& curve, double signal) {
  for (size_t i = 1; i < curve.tpr.size(); ++i) {
    if (curve.tpr[i] < signal) continue;
    const double span = curve.tpr[i] - curve.tpr[i - 1];
    const double share = span > 0 ? (signal - curve.tpr[i - 1]) / span : 0;
    return curve.fpr[i - 1] + (curve.fpr[i] - curve.fpr[i - 1]) * share;
  }
  return std::numeric_limits<double>::quiet_NaN();
}

List working_points_of(const RocCurve& curve) {
  List list;
  for (const double signal : working_points)
    list.push_back(Dict{{"signal", signal}, {"background", background_at(curve, signal)}});
  return list;
}

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
    const RocCurve curve = roc_curve(scores, positive, std::numeric_limits<size_t>::max());
    Dict one{{"class", static_cast<int64_t>(c)}, {"auc", Value()}};
    if (std::isfinite(curve.auc)) {
      one.set("auc", curve.auc);
      one.set("working_points", working_points_of(curve));
    }
    if (outputs <= most_drawn_classes) {
      one.set("fpr", thinned(curve.fpr));
      one.set("tpr", thinned(curve.tpr));
    }
    curves.push_back(std::move(one));
  }
  return curves;
}

const Register<MetricRecord> registered{
    {.name = "roc", .summary = "ROC curve and area per class", .compute = compute}};

}  // namespace
}  // namespace mase::roc_metric
