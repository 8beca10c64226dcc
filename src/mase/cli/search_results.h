// SPDX-License-Identifier: Apache-2.0
// What is left of a search when it is over: files of the best trials, and tables.
#pragma once

#include <string>
#include <vector>

#include "mase/cli/terminal.h"
#include "mase/run/search_experiment.h"

namespace mase::search_command {

std::string test_table(const std::vector<TestScore>& scores, const std::string& split);
// Configurations and networks of the best trials; a large front is cut to its first members, and
// best.json has them all.
void save_best(const SearchExperiment& search, const Experiment& experiment,
               const std::string& folder, const Logger& log);
// The second level: the front trained on, beside what it was without.
void train_best(const SearchExperiment& search, const Experiment& experiment,
                const std::string& folder, const Logger& log);

}  // namespace mase::search_command
