// SPDX-License-Identifier: Apache-2.0
#include "mase/search/models/split.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace mase::search {
namespace {

constexpr double worst = std::numeric_limits<double>::infinity();

}  // namespace

size_t good_trials(size_t finished, size_t objectives) {
  const auto tenth = static_cast<size_t>(std::ceil(0.1 * static_cast<double>(finished)));
  return objectives > 1 ? tenth : std::min<size_t>(tenth, 25);
}

void SplitHistory::take(const Trials& trials, const Trial& trial) {
  const auto number = static_cast<uint32_t>(trial.number);
  const auto put = [](std::vector<Key>& sorted, const Key& key) {
    sorted.insert(std::upper_bound(sorted.begin(), sorted.end(), key), key);
  };
  Kind& kind = kinds_[number];
  kind = Kind::useless;
  if (trial.state != TrialState::complete && trial.state != TrialState::pruned) return;
  ++finished_;
  if (!trial.in_space) return;
  const double violation = trial.violation();
  if (!(violation <= 0)) {
    kind = Kind::infeasible;
    put(infeasible_, {std::isnan(violation) ? worst : violation, 0, number});
  } else if (trial.state == TrialState::pruned) {
    kind = Kind::pruned;
    Key key{1, 0, number};
    if (!trial.intermediate.empty()) {
      const auto& [step, value] = *trial.intermediate.rbegin();
      const double loss = trials.maximise()[0] ? -value : value;
      key = {-static_cast<double>(step), std::isnan(loss) ? worst : loss, number};
    }
    put(pruned_, key);
  } else {
    kind = Kind::feasible;
    put(feasible_, {trials.loss(trial, 0), 0, number});
    if (objectives_ > 1) {
      losses_.resize(std::max(losses_.size(), static_cast<size_t>(number) + 1));
      for (size_t k = 0; k < objectives_; ++k) losses_[number].push_back(trials.loss(trial, k));
    }
  }
}

void SplitHistory::absorb(const Trials& trials, size_t visible) {
  objectives_ = trials.objectives();
  const auto over = [&](uint32_t number) { return number < visible && trials[number].finished(); };
  for (uint32_t& number : open_)
    if (over(number)) {
      take(trials, trials[number]);
      number = static_cast<uint32_t>(-1);
    }
  open_.erase(std::remove(open_.begin(), open_.end(), static_cast<uint32_t>(-1)), open_.end());
  for (; seen_ < trials.size(); ++seen_) {
    const auto number = static_cast<uint32_t>(seen_);
    kinds_.push_back(Kind::useless);
    if (over(number)) {
      take(trials, trials[number]);
      continue;
    }
    open_.push_back(number);
    const Trial& trial = trials[number];
    if (trial.in_space && trial.point.size() == trials.space().dimensions() &&
        trial.state != TrialState::waiting)
      kinds_[number] = Kind::running;
  }
}

std::vector<uint32_t> SplitHistory::best_of_several(size_t good) const {
  std::vector<Losses> points;
  std::vector<uint32_t> numbers;
  for (size_t number = 0; number < losses_.size(); ++number)
    if (kinds_[number] == Kind::feasible) {
      points.push_back(losses_[number]);
      numbers.push_back(static_cast<uint32_t>(number));
    }
  std::vector<uint32_t> chosen;
  if (good >= points.size()) return numbers;
  const std::vector<int> ranks = domination_ranks(points);
  std::vector<std::vector<size_t>> by_rank;
  for (size_t i = 0; i < points.size(); ++i) {
    const auto rank = static_cast<size_t>(ranks[i]);
    if (by_rank.size() <= rank) by_rank.resize(rank + 1);
    by_rank[rank].push_back(i);
  }
  for (const std::vector<size_t>& members : by_rank) {
    const size_t room = good - chosen.size();
    if (members.size() <= room) {
      for (const size_t i : members) chosen.push_back(numbers[i]);
      continue;
    }
    if (room == 0) break;
    std::vector<Losses> front;
    for (const size_t i : members) front.push_back(points[i]);
    for (const size_t i : hypervolume_subset(front, room, reference_point(front)))
      chosen.push_back(numbers[members[i]]);
    break;
  }
  return chosen;
}

void SplitHistory::split(size_t good, std::vector<uint32_t>& below,
                         std::vector<uint32_t>& above) const {
  below.clear();
  above.clear();
  std::vector<uint8_t> is_good(kinds_.size());
  below.reserve(good);
  above.reserve(kinds_.size());
  if (objectives_ > 1) {
    for (const uint32_t number : best_of_several(good)) is_good[number] = true;
    good -= std::min(good, feasible_.size());
  } else {
    for (size_t i = 0; i < feasible_.size() && good > 0; ++i, --good)
      is_good[feasible_[i].number] = true;
  }
  for (const auto* next : {&pruned_, &infeasible_})
    for (size_t i = 0; i < next->size() && good > 0; ++i, --good) is_good[(*next)[i].number] = true;
  for (size_t number = 0; number < kinds_.size(); ++number) {
    if (kinds_[number] == Kind::useless) continue;
    (is_good[number] ? below : above).push_back(static_cast<uint32_t>(number));
  }
}

}  // namespace mase::search
