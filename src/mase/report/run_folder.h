// SPDX-License-Identifier: Apache-2.0
// Reading run folders, as train, test and transform write them: run.json, software/metrics.csv and
// software/transform/results.json. Any of them may be absent, and a run may still be going on.
#pragma once

#include <string>
#include <vector>

#include "mase/base/value.h"
#include "mase/report/curve.h"

namespace mase {

struct RunData {
  std::string name, folder;
  Value run = Dict();         // run.json; empty if absent
  Value results;              // of the passes; null if absent
  std::vector<Curve> curves;  // one per metric, x in steps; *_step columns also as means per epoch
  std::vector<double> epochs, epoch_steps, epoch_seconds;  // where each epoch ended
  size_t rows = 0;                                         // of metrics.csv
  std::string problem;  // what could not be read, where the reader goes on regardless

  const Curve* curve(const std::string& name) const;
};

bool is_run_folder(const std::string& folder);

// The run folders in or below a folder, sorted by path. Symbolic links are not followed.
std::vector<std::string> find_run_folders(const std::string& folder);

// A malformed file is an error that names it and its line.
RunData read_run(const std::string& folder);

// The same, but a malformed file leaves its part out and is noted in `problem`.
RunData read_run_leniently(const std::string& folder);

// Only run.json, leniently: enough for a list of runs.
RunData read_run_outline(const std::string& folder);

// Rows of a metrics.csv text. A last line without its newline is still being written: left out.
void read_metrics(const std::string& text, const std::string& path, RunData& run);

}  // namespace mase
