// SPDX-License-Identifier: Apache-2.0
// What is seen of a search in the terminal while it runs.
#pragma once

#include <chrono>
#include <string>

#include "mase/run/search/search_experiment.h"

namespace mase::search_command {

// "Trial 12/48  best 0.712  3.1 trials/s  00:11 left"
class ProgressText {
 public:
  ProgressText(const SearchExperiment& search, int64_t planned)
      : search_(search), planned_(planned) {}
  void take(const search::Trials& trials, const search::Trial& trial);
  void take_all(const search::Trials& trials);  // those of other processes too
  std::string str() const;

 private:
  void note(const search::Trials& trials, const search::Trial& trial);

  const SearchExperiment& search_;
  int64_t planned_, done_ = 0, first_ = -1;
  bool known_ = false;
  double loss_ = 0, value_ = 0;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

}  // namespace mase::search_command
