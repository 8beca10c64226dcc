// SPDX-License-Identifier: Apache-2.0
// Recall per class: of the rows of a class, the share that was given it. 0 where there are none.
#include "mase/train/metric.h"

namespace mase {
namespace {

Value compute(const MetricInput& input) {
  std::vector<double> hits(static_cast<size_t>(input.outputs)), all(hits.size());
  for (int64_t row = 0; row < input.rows; ++row) {
    const size_t predicted =
        static_cast<size_t>(arg_max(input.logits + row * input.outputs, input.outputs));
    const size_t label = static_cast<size_t>(input.labels[row]);
    hits[label] += predicted == label;
    all[label] += 1;
  }
  List result;
  for (size_t c = 0; c < hits.size(); ++c) result.push_back(all[c] > 0 ? hits[c] / all[c] : 0.0);
  return result;
}

const Register<MetricRecord> registered{
    {.name = "recall", .summary = "per class", .compute = compute}};

}  // namespace
}  // namespace mase
