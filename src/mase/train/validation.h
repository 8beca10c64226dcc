// SPDX-License-Identifier: Apache-2.0
// What is measured on the validation rows after each epoch, and which of it chooses the best one.
#pragma once

#include <string>
#include <vector>

#include "mase/data/dataset.h"
#include "mase/engine/program.h"
#include "mase/train/communicator.h"
#include "mase/train/metric.h"
#include "mase/train/task.h"

namespace mase {

// What of this can be judged before there are data: names and options of metrics, the name of the
// monitored one (empty: the task's).
void check_metrics(const Value& metrics, const std::string& monitor);

class Validation {
 public:
  // The task's figures and those asked for besides; `monitor` (empty: the task's) chooses.
  Validation(const Dataset& dataset, const TaskRecord& task, const Value& metrics,
             const std::string& monitor);

  bool has_rows() const { return data_.validation.rows() > 0; }
  size_t size() const { return stream_.size(); }
  std::string name(size_t index) const;  // "val_acc_epoch"
  std::string monitored_name() const;    // of the training rows, where no others are left

  // Every process runs its share of the rows; the figures are those of all.
  void measure(Program& program, Communicator& processes);
  double value(size_t index) const { return stream_.value(index); }
  double monitored() const { return stream_.value(monitored_); }
  const MetricRecord& record(size_t index) const { return stream_.record(index); }
  bool is_better(double value, double than) const;

 private:
  const Dataset& data_;
  MetricStream stream_;
  size_t monitored_ = 0;
  std::vector<float> outputs_;  // of a batch, where a figure needs them
};

}  // namespace mase
