// SPDX-License-Identifier: Apache-2.0
// Which trials a process runs next: those that wait, or new ones. In a shared storage all of it
// happens in one transaction, with what other processes did before it.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "mase/search/storages/storage.h"
#include "mase/search/study/study.h"

namespace mase::search {
namespace {

constexpr double seconds_of_a_lease = 0.25;
constexpr int64_t most_leased = 4096, parts_of_a_window = 4;

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace

// Trials that take long are leased one by one, short ones for a quarter of a second: a transaction
// then costs little of it, and a process that dies takes little with it.
int64_t Study::lease_size(const Objective& objective) const {
  const bool shares = storage_ && storage_->shared();
  const int64_t together = objective.measure_all ? std::max<int64_t>(1, objective.at_once) : 1;
  if (!options_.independent) {
    if (!shares || mean_seconds_ == 0 || mean_seconds_ * 16 >= seconds_of_a_lease) return 1;
    // Others may begin only when these are finished: a part of what the window lets begin.
    return std::max<int64_t>(1, options_.window / parts_of_a_window);
  }
  if (!shares && together == 1) return 1;
  if (mean_seconds_ == 0) return together;
  const double fitting = std::min(seconds_of_a_lease / std::max(mean_seconds_, 1e-9),
                                  static_cast<double>(most_leased));
  return std::max<int64_t>(1, static_cast<int64_t>(fitting) / together) * together;
}

// The results that the suggestion depends on must be there.
bool Study::may_begin(int64_t number) const {
  if (options_.independent) return true;
  for (const std::set<int64_t>* unfinished : {&own_, &elsewhere_, &waiting_})
    if (!unfinished->empty() && *unfinished->begin() <= number - options_.window) return false;
  return true;
}

bool Study::others_run() const { return !elsewhere_.empty(); }

void Study::pick(int64_t most, const StudyObserver& observer, Shared& shared,
                 std::vector<int64_t>& leased) {
  while (static_cast<int64_t>(leased.size()) < most && !end_reached(observer, shared)) {
    // Trials that were enqueued, or not finished before, come first: they have numbers already.
    int64_t number = static_cast<int64_t>(trials_.size());
    if (!waiting_.empty()) {
      number = *waiting_.begin();
      take_up(number);
    } else if (may_begin(number)) {
      begin(number);
    } else {
      return;
    }
    Trial& trial = trials_.at(static_cast<size_t>(number));
    if (storage_ && !storage_->begin(trials_.space(), trial))
      continue;  // news will say whose it is
    own_.insert(number);
    place_of_[trial.shown()] = number;
    leased.push_back(number);
  }
}

std::vector<int64_t> Study::lease(const Objective& objective, const StudyObserver& observer,
                                  Shared& shared) {
  std::vector<int64_t> leased;
  if (!storage_ || !storage_->shared()) {
    pick(lease_size(objective), observer, shared, leased);
    return leased;
  }
  const auto take_news = [&] {
    for (Trial& trial : storage_->news(trials_.space())) take(std::move(trial));
  };
  const auto full = [&] {
    return waiting_.empty() && !may_begin(static_cast<int64_t>(trials_.size()));
  };
  // A process that has nothing to write keeps nobody waiting while it reads.
  if (!unwritten_) {
    take_news();
    if (seconds_now() < next_look_ && (full() || end_reached(observer, shared))) return leased;
  }
  storage_->exclusively([&] {
    take_news();
    if (lost_were_found()) take_news();
    pick(lease_size(objective), observer, shared, leased);
    // Others that wait can do nothing before some of these are finished, and are told then.
    return leased.empty() || !(full() || end_reached(observer, shared));
  });
  unwritten_ = false;
  return leased;
}

bool Study::lost_were_found() {
  const double now = seconds_now();
  if (now < next_look_) return false;
  next_look_ = now + options_.heartbeat / 2;
  return storage_->retry_lost(2 * options_.heartbeat);
}

// What another process did. One that failed and was tried again is one trial here.
void Study::take(Trial news) {
  const int64_t stored = news.stored;
  auto known = place_of_.find(stored);
  if (known == place_of_.end()) {
    const Value* first = news.system_attributes.find("failed_trial");
    const auto before = first && first->is_int() ? place_of_.find(first->as_int()) : known;
    if (before != place_of_.end()) known = place_of_.emplace(stored, before->second).first;
  }
  int64_t place;
  if (known == place_of_.end()) {
    place = trials_.add(std::move(news)).number;
    place_of_[stored] = place;
  } else {
    place = known->second;
    const Trial& now = trials_[static_cast<size_t>(place)];
    if (own_.count(place) || now.shown() > stored) return;
    news.number = place;
    trials_.replace(std::move(news));
  }
  const Trial& trial = trials_[static_cast<size_t>(place)];
  waiting_.erase(place);
  elsewhere_.erase(place);
  if (trial.state == TrialState::waiting) waiting_.insert(place);
  if (trial.state == TrialState::running && trial.beats) elsewhere_.insert(place);
}

void Study::begin(int64_t number) {
  const auto start = std::chrono::steady_clock::now();
  const int64_t visible = std::max<int64_t>(0, number - options_.window + 1);
  Suggestion suggestion = sampler_->suggest(trials_, {.seed = options_.seed,
                                                      .number = number,
                                                      .visible = static_cast<size_t>(visible),
                                                      .repeats = options_.repeats});
  sampler_seconds_ +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  Trial begun;
  begun.point = std::move(suggestion.point);
  begun.system_attributes = std::move(suggestion.system_attributes);
  begun.started = microseconds_now();
  trials_.add(std::move(begun));
}

// A trial that waits has its configuration, or only some of its parameters: the sampler gives the
// others.
void Study::take_up(int64_t number) {
  waiting_.erase(number);
  Trial trial = trials_[static_cast<size_t>(number)];
  const Space& space = trials_.space();
  if (!trial.in_space) {
    const int64_t visible = std::max<int64_t>(0, number - options_.window + 1);
    const Suggestion suggestion =
        sampler_->suggest(trials_, {.seed = options_.seed,
                                    .number = number,
                                    .visible = static_cast<size_t>(visible),
                                    .repeats = true});
    Point point = suggestion.point;
    const Value* fixed = trial.system_attributes.find("fixed_params");
    for (size_t i = 0; fixed && fixed->is_dict() && i < point.size(); ++i)
      if (const Value* given = fixed->as_dict().find(space.parameters()[i].name))
        if (const auto value = space.parameters()[i].distribution.internal(*given))
          point[i] = *value;
    Random random(options_.seed, "search waiting", static_cast<uint64_t>(number));
    complete_point(space, point, random);
    trial.point = std::move(point);
    trial.in_space = true;
    for (const auto& [key, value] : suggestion.system_attributes)
      trial.system_attributes.set(key, value);
  }
  trial.state = TrialState::running;
  trial.started = microseconds_now();
  trials_.replace(std::move(trial));
}

}  // namespace mase::search
