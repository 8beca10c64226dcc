// SPDX-License-Identifier: Apache-2.0
// A Python object that is told what an experiment does: its methods log(level, line), print(text),
// progress(what, done, total, seconds), step(dict), epoch(dict), started(dict) are called if it has
// them. The library runs without Python's lock; each call takes it. An exception of a callback, or
// Ctrl-C, ends the work at its next safe point and is raised when the library has returned: nothing
// foreign is thrown through it.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <chrono>
#include <optional>

#include "mase/data/dataset.h"
#include "mase/run/observer.h"

namespace mase::python {

namespace nb = nanobind;

class Callbacks {
 public:
  explicit Callbacks(nb::object observer);
  Callbacks(const Callbacks&) = delete;
  Callbacks& operator=(const Callbacks&) = delete;

  Observer observer();    // holds a pointer to this
  bool stop_requested();  // looks for signals now and then
  // With the lock: what a callback threw, or KeyboardInterrupt.
  void rethrow();
  bool interrupted() const { return stopped_; }

  // With the lock held by the call itself.
  template <class Call>
  void call(const Call& call) {
    if (stopped_) return;
    nb::gil_scoped_acquire lock;
    try {
      call();
    } catch (nb::python_error& error) {
      keep(std::move(error));
    }
  }

 private:
  void keep(nb::python_error&& error);
  nb::object method(const char* name) const;

  using Clock = std::chrono::steady_clock;
  nb::object log_, print_, progress_, step_, epoch_, started_;
  std::optional<nb::python_error> error_;
  std::atomic<bool> stopped_ = false;
  Clock::time_point looked_ = Clock::now(), shown_ = {};
};

nb::dict dataset_arrays(const Dataset& dataset);

}  // namespace mase::python
