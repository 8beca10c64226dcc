// SPDX-License-Identifier: Apache-2.0
// Per class: precision, of the rows given a class the share that belongs to it; recall, of the rows
// of a class the share that was given it, 0 where there are none; support, the rows of a class.
#include "mase/train/metric.h"

namespace mase::precision_recall_metric {
namespace {

enum class Share { of_predicted, of_labelled };

template <Share kShare>
Value compute(const MetricInput& input) {
  std::vector<double> hits(static_cast<size_t>(input.outputs)), all(hits.size());
  for (int64_t row = 0; row < input.rows; ++row) {
    const int64_t predicted = arg_max(input.logits + row * input.outputs, input.outputs);
    const int64_t label = input.labels[row];
    const int64_t counted = kShare == Share::of_predicted ? predicted : label;
    if (counted < 0) continue;  // nothing was predicted
    hits[static_cast<size_t>(label)] += predicted == label;
    all[static_cast<size_t>(counted)] += 1;
  }
  List result;
  for (size_t c = 0; c < hits.size(); ++c) result.push_back(all[c] > 0 ? hits[c] / all[c] : 0.0);
  return result;
}

Value count_rows(const MetricInput& input) {
  std::vector<int64_t> rows(static_cast<size_t>(input.outputs));
  for (int64_t row = 0; row < input.rows; ++row) ++rows[static_cast<size_t>(input.labels[row])];
  return Value::of(rows);
}

const Register<MetricRecord> precision{
    {.name = "precision", .summary = "per class", .compute = compute<Share::of_predicted>}};
const Register<MetricRecord> recall{
    {.name = "recall", .summary = "per class", .compute = compute<Share::of_labelled>}};
const Register<MetricRecord> support{
    {.name = "support", .summary = "rows of each class", .compute = count_rows}};

}  // namespace
}  // namespace mase::precision_recall_metric
