// SPDX-License-Identifier: Apache-2.0
// Who is told what an experiment does while it does it: a terminal, a notebook, a search, or
// nobody. Every function may be left empty. Nothing in run/ prints, exits or keeps global state, so
// several experiments may run at once in one process, each with an observer of its own.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "mase/train/trainer.h"

namespace mase {

enum class LogLevel { debug, info, warning, error };

// A piece of long work other than training.
struct Progress {
  std::string what;  // "Testing"
  int64_t done = 0, total = 0;
  double seconds = 0;
};

// A training run is about to begin.
struct TrainStart {
  std::string folder = {};   // empty: nothing is written
  std::string version = {};  // of its TensorBoard logs: "0"
  bool classification = true;
};

struct Observer {
  std::function<void(LogLevel level, const std::string& line)> log = {};
  std::function<void(const std::string& text)> print = {};  // tables and reports of whole lines
  std::function<void(const Progress& progress)> progress = {};
  std::function<bool()> cancelled = {};
  // What the training loop says; `stop_requested` is `cancelled`.
  TrainObserver training = {};
  std::function<void(const TrainStart& start)> started = {};

  void debug(const std::string& line) const { tell(LogLevel::debug, line); }
  void info(const std::string& line) const { tell(LogLevel::info, line); }
  void warning(const std::string& line) const { tell(LogLevel::warning, line); }
  void error(const std::string& line) const { tell(LogLevel::error, line); }
  void text(const std::string& text) const {
    if (print) print(text);
  }

 private:
  void tell(LogLevel level, const std::string& line) const {
    if (log) log(level, line);
  }
};

}  // namespace mase
