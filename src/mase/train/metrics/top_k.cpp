// SPDX-License-Identifier: Apache-2.0
// Top-k accuracy for k = 2, 3, 5 below the number of classes: the label is among the k largest
// logits. Equal logits count against the network.
#include "mase/train/metric.h"

namespace mase::top_k_metric {
namespace {

Value compute(const MetricInput& input) {
  const int64_t ks[] = {2, 3, 5};
  Dict result;
  for (const int64_t k : ks) {
    if (k >= input.outputs) continue;
    int64_t correct = 0;
    for (int64_t row = 0; row < input.rows; ++row)
      correct +=
          among_largest(input.logits + row * input.outputs, input.outputs, input.labels[row], k);
    result.set(std::to_string(k),
               input.rows ? static_cast<double>(correct) / static_cast<double>(input.rows) : 0.0);
  }
  return result;
}

const Register<MetricRecord> registered{
    {.name = "top_k",
     .summary = "share of labels among the k largest outputs; equal outputs count against it",
     .compute = compute}};

}  // namespace
}  // namespace mase::top_k_metric
