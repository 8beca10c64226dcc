// SPDX-License-Identifier: Apache-2.0
// What a training run shows while it runs: Lightning's progress line, TensorBoard event files, and
// the curves for --plot.
#pragma once

#include <memory>
#include <optional>

#include "mase/cli/terminal.h"
#include "mase/report/event_file.h"
#include "mase/report/plot.h"
#include "mase/train/trainer.h"

namespace mase {

class TrainDisplay {
 public:
  // `run` null: nothing is shown or written.
  TrainDisplay(RunFolder* run, const Dataset& dataset, const Logger& log, bool resume);
  const TrainObserver& observer() const { return observer_; }
  void close();
  std::string plot(const PlotStyle& style) const;

 private:
  std::string line(const StepEvent& event) const;
  void on_step(const StepEvent& event);
  void on_log(const StepEvent& event);
  void on_epoch(const EpochEvent& event, const Program& program);

  TrainObserver observer_;
  bool classification_;
  std::unique_ptr<LiveLine> live_;
  std::optional<EventWriter> events_;
  std::string version_ = "0";
  std::optional<double> val_loss_, val_accuracy_;
  StepEvent last_;
  int64_t epoch_ = -1, first_batch_ = 0;
  std::vector<double> train_steps_, train_losses_, val_steps_, val_losses_;
};

}  // namespace mase
