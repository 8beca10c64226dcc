// SPDX-License-Identifier: Apache-2.0
// One configuration that was tried, and all of them: what samplers and pruners learn from.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "mase/search/study/space.h"

namespace mase::search {

enum class TrialState { running, complete, pruned, fail, waiting };
const char* state_name(TrialState state);  // "COMPLETE": Optuna's words
TrialState state_from_name(const std::string& name, const std::string& place);

struct Trial {
  int64_t number = 0;   // in the study as samplers see it: one for each configuration
  int64_t stored = -1;  // in the storage, where a trial that was lost has another one; -1: the same
  TrialState state = TrialState::running;
  Point point;                           // of the study's space
  bool beats = false;                    // it runs elsewhere, and gives signs of life
  bool in_space = true;                  // false: of another space; nothing is learnt from it
  std::vector<double> values = {};       // objectives, as they were measured
  std::vector<double> constraints = {};  // feasible where all are <= 0; empty: none were measured
  std::map<int64_t, double> intermediate = {};  // step: value
  Dict user_attributes = {}, system_attributes = {};
  int64_t started = 0, ended = 0;  // microseconds since 1970, UTC; 0: not yet

  int64_t shown() const { return stored >= 0 ? stored : number; }
  bool finished() const { return state != TrialState::running && state != TrialState::waiting; }
  double violation() const;  // sum of what constraints exceed 0 by
  bool feasible() const { return violation() == 0; }
};

// The trials of one study in the order of their numbers. Looking up whether a point was tried costs
// the same however many there are.
class Trials {
 public:
  Trials(Space space, std::vector<bool> maximise, std::string study_name = "study");

  const Space& space() const { return space_; }
  const std::vector<bool>& maximise() const { return maximise_; }
  size_t objectives() const { return maximise_.size(); }
  const std::string& study_name() const { return name_; }

  size_t size() const { return trials_.size(); }
  const Trial& operator[](size_t number) const { return trials_[number]; }
  std::vector<Trial>::const_iterator begin() const { return trials_.begin(); }
  std::vector<Trial>::const_iterator end() const { return trials_.end(); }

  // A trial with the next number, or changes to an existing one.
  Trial& add(Trial trial);
  void replace(Trial trial);
  Trial& at(size_t number) { return trials_.at(number); }

  bool tried(const Point& point) const;
  size_t distinct() const { return by_hash_.size(); }

  // Objective `i` of a trial, turned so that less is better.
  double loss(const Trial& trial, size_t objective = 0) const {
    return maximise_[objective] ? -trial.values[objective] : trial.values[objective];
  }

 private:
  void remember(const Trial& trial);

  Space space_;
  std::vector<bool> maximise_;
  std::string name_;
  std::vector<Trial> trials_;
  std::unordered_multimap<uint64_t, size_t> by_hash_;
};

}  // namespace mase::search
