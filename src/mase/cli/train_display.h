// SPDX-License-Identifier: Apache-2.0
// What a training run shows while it runs: Lightning's progress line.
#pragma once

#include <memory>
#include <optional>

#include "mase/cli/terminal.h"
#include "mase/run/observer.h"

namespace mase {

class TrainDisplay {
 public:
  // Adds itself to the observer, which must not outlive it.
  TrainDisplay(Observer& observer, const Logger& log);
  void close();
  const std::vector<double>& validation_losses() const { return val_losses_; }  // per epoch

 private:
  std::string line(const StepEvent& event) const;
  void on_step(const StepEvent& event);
  void on_epoch(const EpochEvent& event);

  std::unique_ptr<LiveLine> live_;
  TrainStart start_;
  std::optional<double> train_loss_, train_accuracy_;  // of an epoch that is done
  std::optional<double> val_loss_, val_accuracy_;
  StepEvent last_;
  int64_t epoch_ = -1, first_batch_ = 0;
  std::vector<double> val_losses_;
};

}  // namespace mase
