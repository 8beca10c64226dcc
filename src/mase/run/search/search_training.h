// SPDX-License-Identifier: Apache-2.0
// Training inside a search: which options its candidates may have, and what basic_train says.
#pragma once

#include <vector>

#include "mase/run/search/search_spec.h"
#include "mase/search/spaces/option_space.h"

namespace mase {

// Every option of the trainer that changes what is learned, those of optimisers, schedules and
// losses included.
std::vector<search::TrainingOption> training_options();

// [search.strategy.sw_runner.basic_train], with MASE's keys and any option of training.
void read_basic_train(const Value& table, const std::string& path, SearchSpec& spec,
                      Problems& problems);

}  // namespace mase
