// SPDX-License-Identifier: Apache-2.0
#include "mase/train/validation.h"

#include "mase/base/text.h"
#include "mase/data/token_rows.h"
#include "mase/train/evaluation.h"

namespace mase {

void check_metrics(const Value& metrics, const std::string& monitor) {
  MetricStream stream;
  for (const auto& [name, options] : metrics.as_dict("metrics"))
    stream.choose(name, streamed_metric(name, "--metrics").for_classes, options);
  if (!monitor.empty() && stream.find(curve_name(monitor)) == stream.size())
    streamed_metric(monitor, "--monitor");
}

Validation::Validation(const Dataset& dataset, const TaskRecord& task, const Value& metrics,
                       const std::string& monitor)
    : data_(dataset) {
  const bool classes = dataset.classification;
  for (const std::string& name : task.metrics) stream_.choose(name, classes);
  for (const auto& [name, options] : metrics.as_dict("metrics"))
    stream_.choose(name, classes, options);
  const std::string wanted = curve_name(monitor.empty() ? task.monitor : monitor);
  monitored_ = stream_.find(wanted);
  if (monitored_ == stream_.size()) stream_.choose(wanted, classes);
  if (has_token_labels(dataset) && stream_.needs_outputs())
    throw Error("--metrics",
                "of texts only figures that need no outputs of all tokens are measured",
                "they are loss, perplexity and accuracy");
  if (!has_rows() && record(monitored_).name != "loss")
    throw Error("--monitor",
                fmt::format("{} has no validation rows to measure {} on", dataset.name,
                            record(monitored_).name),
                "choose a --val-split, or monitor the loss");
}

std::string Validation::name(size_t index) const {
  return fmt::format("val_{}_epoch", stream_.curve(index));
}

std::string Validation::monitored_name() const {
  return has_rows() ? name(monitored_) : fmt::format("train_{}_epoch", stream_.curve(monitored_));
}

bool Validation::is_better(double value, double than) const {
  return record(monitored_).higher_is_better ? value > than : value < than;
}

void Validation::measure(Program& program, Communicator& processes) {
  const int64_t batch_size = program.options().batch_size;
  const int64_t batches = (data_.validation.rows() + batch_size - 1) / batch_size;
  const int64_t rank = processes.rank(), parts = processes.size();
  stream_.start(batches, element_count(program.output_shape(0)) / batch_size);
  stream_batches(program, data_.validation, batches * rank / parts, batches * (rank + 1) / parts,
                 stream_, outputs_);
  if (parts > 1) processes.sum(stream_.partials());
}

}  // namespace mase
