// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/train_display.h"

#include "mase/report/text/progress.h"

namespace mase {
namespace {

std::string three_digits(double value) { return fmt::format("{:.3f}", value); }

}  // namespace

TrainDisplay::TrainDisplay(Observer& observer, const Logger& log)
    : live_(std::make_unique<LiveLine>(log.shows_info())) {
  observer.started = [this](const TrainStart& start) { start_ = start; };
  observer.training.on_step = [this](const StepEvent& event) { on_step(event); };
  observer.training.on_epoch = [this](const EpochEvent& event, const Program&) { on_epoch(event); };
}

void TrainDisplay::close() { live_.reset(); }

std::string TrainDisplay::line(const StepEvent& event) const {
  ProgressLine line;
  line.title = fmt::format("Epoch {}", event.epoch);
  line.total = event.batches;
  line.done = event.batch;
  line.seconds = event.epoch_seconds;
  // A resumed epoch has not spent time on the batches before the checkpoint.
  if (first_batch_ > 0 && event.batch > first_batch_)
    line.seconds *=
        static_cast<double>(event.batch) / static_cast<double>(event.batch - first_batch_);
  if (!start_.version.empty()) line.postfix.emplace_back("v_num", start_.version);
  if (train_accuracy_)
    line.postfix.emplace_back("train_acc_epoch", three_digits(*train_accuracy_));
  else if (start_.classification)
    line.postfix.emplace_back("train_acc_step", three_digits(event.accuracy));
  else if (!train_loss_)
    line.postfix.emplace_back("train_loss_step", three_digits(event.loss));
  if (train_loss_) line.postfix.emplace_back("train_loss_epoch", three_digits(*train_loss_));
  if (val_accuracy_) line.postfix.emplace_back("val_acc_epoch", three_digits(*val_accuracy_));
  if (val_loss_) line.postfix.emplace_back("val_loss_epoch", three_digits(*val_loss_));
  return progress_text(line, live_->columns());
}

void TrainDisplay::on_step(const StepEvent& event) {
  if (event.epoch != epoch_) {
    epoch_ = event.epoch;
    first_batch_ = event.batch - 1;
  }
  last_ = event;
  if (live_->due()) live_->draw(line(event));
}

void TrainDisplay::on_epoch(const EpochEvent& event) {
  val_loss_ = event.val_loss;
  val_accuracy_ = event.val_accuracy;
  train_loss_ = event.train_loss;
  train_accuracy_ = event.train_accuracy;
  live_->finish(line(last_));
  train_loss_.reset();  // of that epoch
  train_accuracy_.reset();
  if (event.val_loss) val_losses_.push_back(*event.val_loss);
}

}  // namespace mase
