// SPDX-License-Identifier: Apache-2.0
#include "callbacks.h"

#include "convert.h"

namespace mase::python {
namespace {

constexpr auto between_looks = std::chrono::milliseconds(50);

const char* level_name(LogLevel level) {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
  }
  return "info";
}

Value step_value(const StepEvent& event) {
  return Dict{{"epoch", event.epoch},
              {"batch", event.batch},
              {"batches", event.batches},
              {"step", event.step},
              {"loss", event.loss},
              {"accuracy", event.accuracy},
              {"seconds", event.seconds},
              {"epoch_seconds", event.epoch_seconds},
              {"learning_rate", event.learning_rate}};
}

Value epoch_value(const EpochEvent& event) {
  Dict figures;
  for (const auto& [name, number] : event.figures) figures.set(name, number);
  return Dict{{"epoch", event.epoch},
              {"batches", event.batches},
              {"step", event.step},
              {"seconds", event.seconds},
              {"learning_rate", event.learning_rate},
              {"figures", figures},
              {"best", event.best}};
}

}  // namespace

Callbacks::Callbacks(nb::object observer) {
  if (observer.is_none()) return;
  const auto take = [&](const char* name) {
    return nb::hasattr(observer, name) ? observer.attr(name) : nb::none();
  };
  log_ = take("log");
  print_ = take("print");
  progress_ = take("progress");
  step_ = take("step");
  epoch_ = take("epoch");
  started_ = take("started");
}

void Callbacks::keep(nb::python_error&& error) {
  if (!error_) error_.emplace(std::move(error));
  stopped_ = true;
}

bool Callbacks::stop_requested() {
  if (stopped_) return true;
  const auto now = Clock::now();
  if (now - looked_ < between_looks) return false;
  looked_ = now;
  call([] {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
  });
  return stopped_;
}

void Callbacks::rethrow() {
  if (!error_) return;
  nb::python_error error = std::move(*error_);
  error_.reset();
  throw error;
}

Observer Callbacks::observer() {
  const auto given = [](const nb::object& callback) {
    return callback.is_valid() && !callback.is_none();
  };
  Observer observer;
  observer.cancelled = [this] { return stop_requested(); };
  if (given(log_))
    observer.log = [this](LogLevel level, const std::string& line) {
      call([&] { log_(level_name(level), nb::str(line.data(), line.size())); });
    };
  if (given(print_))
    observer.print = [this](const std::string& text) {
      call([&] { print_(nb::str(text.data(), text.size())); });
    };
  if (given(progress_))
    observer.progress = [this](const Progress& progress) {
      const auto now = Clock::now();
      if (progress.done < progress.total && now - shown_ < between_looks) return;
      shown_ = now;
      call([&] {
        progress_(progress.what.c_str(), progress.done, progress.total, progress.seconds);
      });
    };
  if (given(step_))
    observer.training.on_step = [this](const StepEvent& event) {
      const auto now = Clock::now();
      if (now - shown_ < between_looks) return;
      shown_ = now;
      call([&] { step_(from_value(step_value(event))); });
    };
  if (given(epoch_))
    observer.training.on_epoch = [this](const EpochEvent& event, const Program&) {
      call([&] { epoch_(from_value(epoch_value(event))); });
    };
  if (given(started_))
    observer.started = [this](const TrainStart& start) {
      call([&] {
        started_(from_value(Dict{{"folder", start.folder},
                                 {"version", start.version},
                                 {"classification", start.classification}}));
      });
    };
  return observer;
}

}  // namespace mase::python
