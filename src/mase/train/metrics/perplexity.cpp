// SPDX-License-Identifier: Apache-2.0
// exp of the mean loss: over all tokens that are predicted, of all batches together. A mean of the
// batches' perplexities would be another number.
#include <cmath>

#include "mase/train/metric.h"

namespace mase::perplexity_metric {
namespace {

void add(const MetricInput& batch, const Value&, std::span<double> row) {
  row[0] = batch.loss_weight != 0 ? batch.loss * batch.loss_weight : batch.loss;
  row[1] = batch.loss_weight;
}

double value(std::span<const double> table, int64_t columns, const Value&) {
  const std::vector<double> sums = column_sums(table, columns);
  return sums[1] > 0 ? std::exp(sums[0] / sums[1]) : 1;
}

const Register<MetricRecord> registered{{
    .name = "perplexity",
    .aliases = {"ppl"},
    .summary = "exp of the mean loss over all predicted tokens",
    .higher_is_better = false,
    .needs_outputs = false,
    .columns = [](int64_t) -> int64_t { return 2; },
    .add = add,
    .value = value,
    // A figure of language, not of every classification.
    .curve_of = [](const Value&) -> std::string { return "perplexity"; },
}};

}  // namespace
}  // namespace mase::perplexity_metric
