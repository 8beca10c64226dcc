// SPDX-License-Identifier: Apache-2.0
// F1 per class: the harmonic mean of precision and recall; 0 where a class neither occurs nor is
// given. GLUE's F1 of MRPC and QQP is that of class 1.
#include "mase/train/metric.h"

namespace mase::f1_metric {
namespace {

Value compute(const MetricInput& input) {
  std::vector<double> hits(static_cast<size_t>(input.outputs)), all(hits.size());
  for (int64_t row = 0; row < input.rows; ++row) {
    const int64_t given = arg_max(input.logits + row * input.outputs, input.outputs);
    const auto label = static_cast<size_t>(input.labels[row]);
    hits[label] += given == input.labels[row];
    if (given >= 0) all[static_cast<size_t>(given)] += 1;  // no class without finite scores
    all[label] += 1;
  }
  List result;
  for (size_t c = 0; c < hits.size(); ++c)
    result.push_back(all[c] > 0 ? 2 * hits[c] / all[c] : 0.0);
  return result;
}

const Register<MetricRecord> registered{
    {.name = "f1", .summary = "per class, of precision and recall", .compute = compute}};

}  // namespace
}  // namespace mase::f1_metric
