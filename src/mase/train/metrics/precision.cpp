// SPDX-License-Identifier: Apache-2.0
// Precision per class: of the rows given a class, the share that belongs to it. 0 where there are
// none.
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
    all[predicted] += 1;
  }
  List result;
  for (size_t c = 0; c < hits.size(); ++c) result.push_back(all[c] > 0 ? hits[c] / all[c] : 0.0);
  return result;
}

const Register<MetricRecord> registered{
    {.name = "precision", .summary = "per class", .compute = compute}};

}  // namespace
}  // namespace mase
