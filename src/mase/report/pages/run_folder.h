// SPDX-License-Identifier: Apache-2.0
// Reading run folders, as train, test and transform write them: run.json, software/metrics.csv and
// software/transform/results.json. Any of them may be absent, and a run may still be going on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/base/value.h"
#include "mase/report/charts/curve.h"

namespace mase {

// NAME_logged is the mean of the rows of NAME_step within an epoch: of what was logged, which need
// not be every batch. It has a name of its own beside NAME_epoch, the mean over all of them.
struct RunData {
  std::string name, folder;
  Value run = Dict();         // run.json; empty if absent
  Value results;              // of the passes; null if absent
  std::vector<Curve> curves;  // one per metric, x in steps; *_step columns also as *_logged
  std::vector<double> epochs, epoch_steps, epoch_seconds;  // where each epoch ended
  size_t rows = 0;                                         // of metrics.csv
  std::string problem;  // what could not be read, where the reader goes on regardless

  const Curve* curve(const std::string& name) const;
};

// The accuracy that was measured on the rows of that split ("test", "validation"), if it was: a
// figure of another split, or of one that was not recorded, is never given in its place.
std::optional<double> accuracy_on(const RunData& run, const std::string& split);

bool is_run_folder(const std::string& folder);

// The run folders in or below a folder, sorted by path. Symbolic links are not followed.
std::vector<std::string> find_run_folders(const std::string& folder);

// A malformed file is an error that names it and its line.
RunData read_run(const std::string& folder);

// The same, but a malformed file leaves its part out and is noted in `problem`. With `root`, a
// folder above, no symbolic link below it is followed: nothing is read that lies elsewhere.
RunData read_run_leniently(const std::string& folder, const std::string& root = "");

// Only run.json, leniently: enough for a list of runs.
RunData read_run_outline(const std::string& folder, const std::string& root = "");

// Rows of a metrics.csv text. A last line without its newline is still being written: left out.
void read_metrics(const std::string& text, const std::string& path, RunData& run);

}  // namespace mase
