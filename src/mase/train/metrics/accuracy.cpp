// SPDX-License-Identifier: Apache-2.0
// Micro accuracy: the share of rows whose largest logit is the label's.
#include "mase/train/metric.h"

namespace mase::accuracy_metric {
namespace {

Value compute(const MetricInput& input) {
  int64_t correct = 0;
  for (int64_t row = 0; row < input.rows; ++row)
    correct += arg_max(input.logits + row * input.outputs, input.outputs) == input.labels[row];
  return input.rows ? static_cast<double>(correct) / static_cast<double>(input.rows) : 0.0;
}

const Register<MetricRecord> registered{
    {.name = "accuracy", .summary = "share of rows classified rightly", .compute = compute}};

}  // namespace
}  // namespace mase::accuracy_metric
