// SPDX-License-Identifier: Apache-2.0
#include "mase/run/event_log.h"

#include <algorithm>
#include <filesystem>

#include "mase/base/text.h"

namespace mase {
namespace {

namespace fs = std::filesystem;

// Above this many weights a histogram per epoch would be the largest part of the run folder.
constexpr size_t most_histogram_values = 1 << 20;

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

}  // namespace

EventLog::EventLog(const std::string& software, bool classification, bool resume)
    : version_(event_folder(software + "/tensorboard/lightning_logs", resume)),
      classification_(classification),
      events_(EventWriter::open(version_)) {
  version_ = version_.substr(version_.rfind('_') + 1);
}

void EventLog::on_log(const StepEvent& event) {
  if (classification_) events_.scalar("train_acc_step", event.step, event.accuracy);
  events_.scalar("train_loss_step", event.step, event.loss);
  events_.scalar("learning_rate", event.step, event.learning_rate);
}

void EventLog::on_epoch(const EpochEvent& event, const Program& program) {
  for (const auto& [name, value] : event.figures) events_.scalar(name, event.step, value);
  events_.scalar("epoch", event.step, static_cast<double>(event.epoch));
  for (const auto& [name, tensor] : program.state())
    if (tensor.dtype() == DType::f32 &&
        static_cast<size_t>(tensor.numel()) <= most_histogram_values)
      events_.histogram(name, event.step, tensor.values<float>());
}

}  // namespace mase
