// SPDX-License-Identifier: Apache-2.0
// The trials of a study divided into the good ones and the others, as Optuna's TPE does it:
// complete feasible trials first, by value or by domination rank and hypervolume; then pruned ones
// by how far they came; then infeasible ones by how much they exceed; running ones are never good.
// Kept from call to call: only what is new is looked at.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "mase/search/study/pareto.h"
#include "mase/search/study/trial.h"

namespace mase::search {

// How many are good: a tenth, at most 25 with one objective.
size_t good_trials(size_t finished, size_t objectives);

class SplitHistory {
 public:
  // Takes in what was finished since; trials from `visible` on count as running.
  void absorb(const Trials& trials, size_t visible);

  size_t finished() const { return finished_; }  // complete and pruned
  // Numbers in ascending order.
  void split(size_t good, std::vector<uint32_t>& below, std::vector<uint32_t>& above) const;

 private:
  enum class Kind : uint8_t { feasible, pruned, infeasible, running, useless };
  struct Key {
    double first = 0, second = 0;
    uint32_t number = 0;
    bool operator<(const Key& other) const {
      return std::tie(first, second, number) < std::tie(other.first, other.second, other.number);
    }
  };
  void take(const Trials& trials, const Trial& trial);
  std::vector<uint32_t> best_of_several(size_t good) const;

  size_t seen_ = 0;
  size_t finished_ = 0;
  std::vector<Kind> kinds_;
  std::vector<uint32_t> open_;                       // numbers of trials that were not finished
  std::vector<Key> feasible_, pruned_, infeasible_;  // sorted
  std::vector<Losses> losses_;                       // several objectives: by number
  size_t objectives_ = 1;
};

}  // namespace mase::search
