// SPDX-License-Identifier: Apache-2.0
#include "mase/train/metric.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace mase {

Value compute_metric(const std::string& name, const MetricInput& input) {
  return Registry<MetricRecord>::instance().get(name).compute(input);
}

int64_t arg_max(const float* values, int64_t count) {
  return std::max_element(values, values + count) - values;
}

RocCurve roc_curve(const std::vector<float>& scores, const std::vector<bool>& positive,
                   size_t points) {
  std::vector<uint32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
  const double positives = static_cast<double>(std::count(positive.begin(), positive.end(), true));
  const double negatives = static_cast<double>(scores.size()) - positives;
  RocCurve curve;
  if (positives == 0 || negatives == 0) {
    curve.auc = std::numeric_limits<double>::quiet_NaN();
    return curve;
  }
  std::vector<double> fpr = {0}, tpr = {0};
  double hits = 0, alarms = 0, area = 0;
  for (size_t i = 0; i < order.size();) {
    const double hits_before = hits, alarms_before = alarms;
    const float score = scores[order[i]];
    for (; i < order.size() && scores[order[i]] == score; ++i)
      (positive[order[i]] ? hits : alarms) += 1;
    area += (alarms - alarms_before) * (hits + hits_before) / 2;  // the trapezium over a tie
    fpr.push_back(alarms / negatives);
    tpr.push_back(hits / positives);
  }
  curve.auc = area / (positives * negatives);
  const size_t last = fpr.size() - 1, kept = std::max<size_t>(2, std::min(points, fpr.size()));
  for (size_t i = 0; i < kept; ++i) {
    const size_t at = i * last / (kept - 1);
    curve.fpr.push_back(fpr[at]);
    curve.tpr.push_back(tpr[at]);
  }
  return curve;
}

}  // namespace mase
