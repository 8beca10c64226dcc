// SPDX-License-Identifier: Apache-2.0
// An experiment with its settings and whoever is told about it, as Python holds one.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "callbacks.h"
#include "mase/run/experiment.h"
#include "mase/run/settings.h"

namespace mase::python {

class Session {
 public:
  Session(nb::handle given, const std::string& config, nb::handle passes, nb::object observer,
          nb::handle tables, const std::optional<std::string>& resume, const std::string& command);

  void prepare(bool needs_data, bool keep_scaling, bool with_passes);
  // Rows in memory in the place of a data set; labels: words that y has places of. As tests they
  // are test rows, all of them.
  void set_arrays(nb::handle x, nb::handle y, std::vector<std::string> labels, bool as_test);
  void set_graph(const Graph& graph, nb::handle contents);  // in the place of a file
  nb::dict train(bool save);
  nb::dict evaluate(const std::string& split);
  nb::list predict(const std::vector<std::string>& inputs, const std::string& tensor,
                   bool preprocess, bool keep_places);
  nb::dict transform(bool save);
  nb::list apply_passes(const std::string& save_dir);

  // Long work: without the lock, and afterwards what a callback threw. Training that was stopped
  // returns what it has; `interrupted` and `rethrow` tell the caller, who may want both.
  template <class Work>
  void run(const Work& work) {
    nb::gil_scoped_release unlocked;
    work();
  }
  bool interrupted() const { return callbacks_.interrupted(); }
  void rethrow() { callbacks_.rethrow(); }

  Experiment& experiment();
  RunFolder create_folder(const std::string& kind) { return create_folder(kind, experiment()); }
  RunFolder create_folder(const std::string& kind, const Experiment& experiment) const;
  Settings& settings() { return settings_; }
  const InMemory& memory() const { return memory_; }
  const Observer& observer() const { return observer_; }
  Callbacks& callbacks() { return callbacks_; }

 private:
  bool classification();

  Callbacks callbacks_;
  Settings settings_;
  std::optional<RunFolder> resumed_;
  InMemory memory_;
  Observer observer_;
  std::unique_ptr<Experiment> experiment_;
};

}  // namespace mase::python
