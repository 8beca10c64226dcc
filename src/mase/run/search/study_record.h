// SPDX-License-Identifier: Apache-2.0
// What the page of a search shows, from the study itself: one that Optuna made or continued, that a
// search in Python left, or that other processes work on now.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "mase/search/study/trial.h"

namespace mase {

// As search.json has it, of the study of this name; "": the only one of the storage.
Value study_record(const std::string& address, const std::string& study);

// Parts of records of searches, for whoever writes one.
// What was tried: parameters, best trials by the numbers they are shown with, the best value after
// each, and trials themselves, of many an even choice beside the front (places of `trials`).
void record_trials(Value& record, const search::Trials& trials, const std::set<int64_t>& front);
Value importance_rows(const search::Trials& trials, const std::vector<std::string>& objectives,
                      uint64_t seed, const std::function<bool()>& stop);
Value number_or_none(double value);

}  // namespace mase
