// SPDX-License-Identifier: Apache-2.0
// A training run's TensorBoard files, written as it goes: Lightning's tags, a histogram of each
// weight tensor per epoch.
#pragma once

#include <string>

#include "mase/report/events/event_file.h"
#include "mase/train/trainer.h"

namespace mase {

class EventLog {
 public:
  // Below `software`; a resumed run goes on in the folder of its latest version.
  EventLog(const std::string& software, bool classification, bool resume);

  const std::string& version() const { return version_; }  // "0"
  void on_log(const StepEvent& event);
  void on_epoch(const EpochEvent& event, const Program& program);
  void flush() { events_.flush(); }

 private:
  std::string version_;
  bool classification_;
  EventWriter events_;
};

}  // namespace mase
