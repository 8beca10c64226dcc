// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/train_display.h"

#include <cmath>
#include <filesystem>

#include "mase/report/progress.h"

namespace mase {
namespace {

namespace fs = std::filesystem;

// Above this many weights a histogram per epoch would be the largest part of the run folder.
constexpr size_t most_histogram_values = 1 << 20;

// A resumed run goes on in the folder of its latest version.
std::string event_folder(const std::string& logs, bool resume) {
  int64_t latest = -1;
  std::error_code ignored;
  if (resume)
    for (const auto& entry : fs::directory_iterator(logs, ignored)) {
      const std::string name = entry.path().filename().string();
      if (starts_with(name, "version_"))
        latest = std::max(latest, parse_integer(name.substr(8)).value_or(-1));
    }
  return latest >= 0 ? fmt::format("{}/version_{}", logs, latest) : new_event_folder(logs);
}

std::string three_digits(double value) { return fmt::format("{:.3f}", value); }

}  // namespace

TrainDisplay::TrainDisplay(RunFolder* run, const Dataset& dataset, const Logger& log, bool resume)
    : classification_(dataset.classification) {
  observer_.stop_requested = [] { return interrupted(); };
  if (!run) return;
  const std::string folder = event_folder(run->software("tensorboard") + "/lightning_logs", resume);
  version_ = folder.substr(folder.rfind('_') + 1);
  events_ = EventWriter::open(folder);
  live_ = std::make_unique<LiveLine>(log.shows_info());
  observer_.on_step = [this](const StepEvent& event) { on_step(event); };
  observer_.on_log = [this](const StepEvent& event) { on_log(event); };
  observer_.on_epoch = [this](const EpochEvent& event, const Program& program) {
    on_epoch(event, program);
  };
  observer_.before_checkpoint = [this] { events_->flush(); };
}

void TrainDisplay::close() {
  live_.reset();
  if (events_) events_->flush();
}

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
  line.postfix.emplace_back("v_num", version_);
  if (classification_)
    line.postfix.emplace_back("train_acc_step", three_digits(event.accuracy));
  else
    line.postfix.emplace_back("train_loss_step", three_digits(event.loss));
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

void TrainDisplay::on_log(const StepEvent& event) {
  if (classification_) events_->scalar("train_acc_step", event.step, event.accuracy);
  events_->scalar("train_loss_step", event.step, event.loss);
  events_->scalar("learning_rate", event.step, event.learning_rate);
  train_steps_.push_back(static_cast<double>(event.step));
  train_losses_.push_back(event.loss);
}

void TrainDisplay::on_epoch(const EpochEvent& event, const Program& program) {
  val_loss_ = event.val_loss;
  val_accuracy_ = event.val_accuracy;
  live_->finish(line(last_));
  if (event.val_accuracy) events_->scalar("val_acc_epoch", event.step, *event.val_accuracy);
  if (event.val_loss) {
    events_->scalar("val_loss_epoch", event.step, *event.val_loss);
    val_steps_.push_back(static_cast<double>(event.step));
    val_losses_.push_back(*event.val_loss);
  }
  events_->scalar("epoch", event.step, static_cast<double>(event.epoch));
  for (const auto& [name, tensor] : program.state())
    if (tensor.dtype() == DType::f32 &&
        static_cast<size_t>(tensor.numel()) <= most_histogram_values)
      events_->histogram(name, event.step, tensor.values<float>());
}

std::string TrainDisplay::plot(const PlotStyle& style) const {
  CurvePlot plot;
  plot.title = "loss";
  plot.x_label = "step";
  if (!train_steps_.empty())
    plot.curves.push_back({"train_loss_step", train_steps_, train_losses_});
  if (!val_steps_.empty()) plot.curves.push_back({"val_loss_epoch", val_steps_, val_losses_});
  return plot.curves.empty() ? "" : plot_curves(plot, style);
}

}  // namespace mase
