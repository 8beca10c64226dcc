// SPDX-License-Identifier: Apache-2.0
// What the page of a search shows, from the study itself: one that Optuna made or continued, that a
// search in Python left, or that other processes work on now.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mase/search/study/trial.h"

namespace mase {

// As search.json has it, of the study of this name; "": the only one of the storage.
Value study_record(const std::string& address, const std::string& study);

// Parts of records of searches, for whoever writes one.
Value best_so_far(const search::Trials& trials);
Value importance_rows(const search::Trials& trials, const std::vector<std::string>& objectives,
                      uint64_t seed, const std::function<bool()>& stop);
Value number_or_none(double value);
constexpr size_t most_recorded_trials = 4000;

}  // namespace mase
