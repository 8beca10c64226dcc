// SPDX-License-Identifier: Apache-2.0
#include "mase/search/study/trial.h"

#include <array>

#include "mase/base/text.h"

namespace mase::search {
namespace {

constexpr std::array<const char*, 5> state_names = {"RUNNING", "COMPLETE", "PRUNED", "FAIL",
                                                    "WAITING"};

}  // namespace

const char* state_name(TrialState state) { return state_names[static_cast<size_t>(state)]; }

TrialState state_from_name(const std::string& name, const std::string& place) {
  for (size_t i = 0; i < state_names.size(); ++i)
    if (name == state_names[i]) return static_cast<TrialState>(i);
  throw Error(place, fmt::format("unknown state '{}' of a trial", printable(name)));
}

double Trial::violation() const {
  double sum = 0;
  for (const double constraint : constraints)
    if (!(constraint <= 0)) sum += constraint;
  return sum;
}

Trials::Trials(Space space, std::vector<bool> maximise, std::string study_name)
    : space_(std::move(space)), maximise_(std::move(maximise)), name_(std::move(study_name)) {}

void Trials::remember(const Trial& trial) {
  if (trial.in_space && trial.point.size() == space_.dimensions() && !tried(trial.point))
    by_hash_.emplace(hash_point(trial.point), static_cast<size_t>(trial.number));
}

Trial& Trials::add(Trial trial) {
  trial.number = static_cast<int64_t>(trials_.size());
  trials_.push_back(std::move(trial));
  remember(trials_.back());
  return trials_.back();
}

void Trials::replace(Trial trial) {
  const auto number = static_cast<size_t>(trial.number);
  MASE_CHECK(number < trials_.size(), "trial {} is not there yet", number);
  trials_[number] = std::move(trial);
  remember(trials_[number]);
}

bool Trials::tried(const Point& point) const {
  const auto [first, last] = by_hash_.equal_range(hash_point(point));
  for (auto entry = first; entry != last; ++entry)
    if (same_point(trials_[entry->second].point, point)) return true;
  return false;
}

}  // namespace mase::search
