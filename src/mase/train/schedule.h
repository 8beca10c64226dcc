// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedules as pure functions of the position in the run: nothing to save, nothing to
// get wrong on resuming. A schedule is one file in schedules/ that registers one record.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/base/schema.h"

namespace mase {

struct SchedulePosition {
  double base = 0;    // the rate the user gave
  int64_t epoch = 0;  // counted from 0
  int64_t step = 0;   // optimiser steps done before this one, over all epochs
  int64_t max_epochs = 1;
  int64_t total_steps = 1;  // of the whole run
};

struct ScheduleRecord {
  static constexpr const char* kind = "schedule";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  Schema arguments = {};
  std::function<double(const Value& arguments, const SchedulePosition& at)> rate;
  // What a user should know about these arguments with this rate; empty: nothing.
  std::function<std::string(const Value& arguments, double base)> notice = {};
};

class Schedule {
 public:
  // `warmup_steps` lets any schedule rise linearly from 0 first.
  Schedule(const std::string& name, const Value& arguments, int64_t warmup_steps = 0);
  double rate(const SchedulePosition& at) const;
  // An error if a rate of such a run is not a finite number from 0.
  void check(const SchedulePosition& whole) const;

 private:
  const ScheduleRecord* record_;
  Value arguments_;
  int64_t warmup_steps_;
};

}  // namespace mase
