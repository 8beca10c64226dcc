// SPDX-License-Identifier: Apache-2.0
#include "mase/train/metric.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "mase/base/text.h"

namespace mase {
namespace {

std::string curve_of(const MetricRecord& record, const Value& options) {
  if (record.curve_of) return record.curve_of(options);
  return record.curve.empty() ? record.name : record.curve;
}

}  // namespace

Value compute_metric(const std::string& name, const MetricInput& input) {
  const MetricRecord& record = Registry<MetricRecord>::instance().get(name);
  if (record.compute) return record.compute(input);
  const Value options = validate(Dict{}, record.options, name);
  MetricInput whole = input;
  if (input.logits && input.labels) {
    whole.correct = 0;
    for (int64_t row = 0; row < input.rows; ++row)
      whole.correct +=
          arg_max(input.logits + row * input.outputs, input.outputs) == input.labels[row];
  }
  std::vector<double> row(static_cast<size_t>(record.columns(input.outputs)));
  record.add(whole, options, row);
  const double value = record.value(row, static_cast<int64_t>(row.size()), options);
  return std::isfinite(value) ? Value(value) : Value(nullptr);
}

std::string curve_name(const std::string& name) {
  return starts_with(name, "val_") && ends_with(name, "_epoch") ? name.substr(4, name.size() - 10)
                                                                : name;
}

const MetricRecord& streamed_metric(const std::string& name, const std::string& place) {
  const std::string wanted = curve_name(name);
  std::vector<std::string> known;
  for (const MetricRecord* record : Registry<MetricRecord>::instance().all()) {
    if (!record->add) continue;
    known.push_back(record->name);
    const std::string curve = curve_of(*record, validate(Dict{}, record->options, record->name));
    if (record->name == wanted || curve == wanted ||
        std::count(record->aliases.begin(), record->aliases.end(), wanted) > 0)
      return *record;
  }
  const bool exists = Registry<MetricRecord>::instance().find(wanted) != nullptr;
  throw Error(place,
              exists ? fmt::format("{} is no single figure", wanted)
                     : fmt::format("unknown metric '{}'", printable(name)),
              suggestion(wanted, known));
}

void MetricStream::choose(const std::string& name, bool classes, const Value& options) {
  const MetricRecord& record = streamed_metric(name, "metric");
  if (classes ? !record.for_classes : !record.for_numbers)
    throw Error("metric",
                fmt::format("{} is a figure of {}, the data have {}", record.name,
                            classes ? "numbers" : "classes", classes ? "classes" : "numbers"),
                "choose another one");
  Chosen chosen{&record, validate(options.is_null() ? Value(Dict{}) : options, record.options,
                                  "metrics." + record.name)};
  for (Chosen& other : chosen_)
    if (other.record == &record) {
      other = std::move(chosen);
      return;
    }
  chosen_.push_back(std::move(chosen));
}

bool MetricStream::needs_outputs() const {
  return std::any_of(chosen_.begin(), chosen_.end(),
                     [](const Chosen& chosen) { return chosen.record->needs_outputs; });
}

void MetricStream::start(int64_t batches, int64_t outputs) {
  batches_ = batches;
  size_t total = 0;
  for (Chosen& chosen : chosen_) {
    chosen.columns = chosen.record->columns(outputs);
    chosen.begin = total;
    total += static_cast<size_t>(chosen.columns * batches);
  }
  partials_.assign(total, 0.0);
}

void MetricStream::add(int64_t batch, const MetricInput& input) {
  for (const Chosen& chosen : chosen_) {
    const size_t at = chosen.begin + static_cast<size_t>(batch * chosen.columns);
    chosen.record->add(input, chosen.options,
                       std::span(partials_).subspan(at, static_cast<size_t>(chosen.columns)));
  }
}

std::string MetricStream::curve(size_t index) const {
  return curve_of(*chosen_[index].record, chosen_[index].options);
}

size_t MetricStream::find(const std::string& name) const {
  const MetricRecord* record = Registry<MetricRecord>::instance().find(name);
  for (size_t i = 0; i < chosen_.size(); ++i)
    if (chosen_[i].record == record || curve(i) == name || "val_" + curve(i) + "_epoch" == name)
      return i;
  return chosen_.size();
}

double MetricStream::value(size_t index) const {
  const Chosen& chosen = chosen_[index];
  return chosen.record->value(
      std::span(partials_).subspan(chosen.begin, static_cast<size_t>(chosen.columns * batches_)),
      chosen.columns, chosen.options);
}

std::vector<double> column_sums(std::span<const double> table, int64_t columns) {
  std::vector<double> sums(static_cast<size_t>(columns));
  for (size_t i = 0; i < table.size(); ++i) sums[i % sums.size()] += table[i];
  return sums;
}

bool has_scores(const float* values, int64_t count) {
  float largest = -std::numeric_limits<float>::infinity();
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(values[i])) return false;
    largest = std::max(largest, values[i]);
  }
  return std::isfinite(largest);
}

int64_t arg_max(const float* values, int64_t count) {
  return has_scores(values, count) ? std::max_element(values, values + count) - values : -1;
}

bool among_largest(const float* values, int64_t count, int64_t label, int64_t k) {
  if (!has_scores(values, count)) return false;
  int64_t above = 0;
  for (int64_t c = 0; c < count; ++c) above += c != label && values[c] >= values[label];
  return above < k;
}

RocCurve roc_curve(const std::vector<float>& scores, const std::vector<bool>& positive,
                   size_t points) {
  RocCurve curve;
  const double positives = static_cast<double>(std::count(positive.begin(), positive.end(), true));
  const double negatives = static_cast<double>(scores.size()) - positives;
  const bool ranked =
      std::none_of(scores.begin(), scores.end(), [](float score) { return std::isnan(score); });
  if (positives == 0 || negatives == 0 || !ranked) {
    curve.auc = std::numeric_limits<double>::quiet_NaN();
    return curve;
  }
  std::vector<uint32_t> order(scores.size());
  std::iota(order.begin(), order.end(), 0u);
  std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return scores[a] != scores[b] ? scores[a] > scores[b] : a < b;
  });
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
