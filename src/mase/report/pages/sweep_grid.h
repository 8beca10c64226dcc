// SPDX-License-Identifier: Apache-2.0
// A sweep as data: the grid of runs that --vary and --seeds span, the state file that remembers
// what is done, and the results as rows. Starting processes is the command's business.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mase/base/value.h"
#include "mase/report/pages/run_folder.h"

namespace mase {

struct Variation {
  std::string option;  // "batch_size"
  std::vector<std::string> values;
};

// "batch_size=64,256,1024"; dashes in an option's name are the same as underscores. A name with
// dots is a key of the configuration and stays as it is.
Variation parse_variation(const std::string& text);

// "passes.quantize.linear.config.weight_width": no option, a key of the configuration.
bool is_config_key(const std::string& option);

struct SweepRun {
  std::string name;  // "batch_size=64,learning_rate=1e-2,seed=0": also its folder
  std::vector<std::pair<std::string, std::string>> settings;  // in the order of --vary, then seed
  std::vector<std::string> words;  // the command line behind the program's name
  std::string status = "waiting";  // finished, failed, interrupted
  std::string cause;               // of a failure
  double seconds = 0;
};

// Every combination, the last variation fastest and seeds fastest of all. `base` is the command
// with its words; `folder` is where the runs go.
std::vector<SweepRun> sweep_grid(const std::vector<std::string>& base,
                                 const std::vector<Variation>& variations,
                                 std::optional<int64_t> seeds, int64_t first_seed,
                                 const std::string& folder);

// What the state file of an earlier sweep says of these very runs (same words) is taken over.
void take_over_state(std::vector<SweepRun>& runs, const Value& state, const std::string& folder);
// Whether the run was made by these words.
bool is_of_command(const RunData& run, const std::vector<std::string>& words);
Value sweep_state(const std::vector<SweepRun>& runs, const std::vector<std::string>& base);

struct SweepResult {
  const SweepRun* run = nullptr;
  std::optional<RunData> data;  // of a finished run
};

std::string sweep_csv(const std::vector<SweepResult>& results);
// One row per setting with means and deviations over seeds; the best is marked.
std::string sweep_table(const std::vector<SweepResult>& results);

}  // namespace mase
