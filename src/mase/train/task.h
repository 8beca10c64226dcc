// SPDX-License-Identifier: Apache-2.0
// Tasks: what a network is for decides which loss it is trained with, which figures are measured
// after each epoch, and by which of them the best epoch is chosen. A task is one file in tasks/
// that registers one record.
#pragma once

#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/data/dataset.h"

namespace mase {

struct TaskRecord {
  static constexpr const char* kind = "task";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  bool classes = true;               // targets are classes, or else numbers
  bool each_token = false;           // each token of a row has one
  bool usual = false;                // what such data are for if nobody says
  std::string loss;                  // a LossRecord
  std::vector<std::string> metrics;  // MetricRecords, as curves show them
  std::string monitor = "loss";      // one of them
};

const TaskRecord& default_task(const Dataset& dataset);
// The task of that name, which must be one for such data; empty: the default.
const TaskRecord& task_for(const Dataset& dataset, const std::string& name);

}  // namespace mase
