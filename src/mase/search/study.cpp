// SPDX-License-Identifier: Apache-2.0
#include "mase/search/study.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <set>
#include <thread>

#include "mase/search/pareto.h"
#include "mase/search/storage.h"

namespace mase::search {

int64_t microseconds_now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

struct Study::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  std::chrono::steady_clock::time_point start = std::chrono::steady_clock::now();
  std::optional<StudyEnd> end;
  std::exception_ptr failure;
  std::set<int64_t> running;  // trials of this process
};

Study::Study(Trials trials, std::unique_ptr<Sampler> sampler, std::unique_ptr<Pruner> pruner,
             Storage* storage, StudyOptions options)
    : trials_(std::move(trials)),
      sampler_(std::move(sampler)),
      pruner_(std::move(pruner)),
      storage_(storage),
      options_(options) {
  if (options_.window < 1) options_.window = std::max(1, options_.jobs);
  for (const Trial& trial : trials_)
    if (trial.state == TrialState::waiting) waiting_.insert(trial.number);
}

Study::~Study() = default;

std::optional<StudyEnd> Study::end_reached(const StudyObserver& observer,
                                           const Shared& shared) const {
  if (shared.end) return shared.end;
  if (observer.stop_requested && observer.stop_requested()) return StudyEnd::interrupted;
  if (options_.trials >= 0 && static_cast<int64_t>(trials_.size()) >= options_.trials)
    return StudyEnd::all_done;
  if (!options_.repeats && static_cast<double>(trials_.distinct()) >= trials_.space().size())
    return StudyEnd::space_exhausted;
  const std::chrono::duration<double> past = std::chrono::steady_clock::now() - shared.start;
  if (options_.seconds > 0 && past.count() >= options_.seconds) return StudyEnd::timeout;
  return {};
}

std::optional<int64_t> Study::next_waiting(const StudyObserver& observer,
                                           const Shared& shared) const {
  if (shared.end || (observer.stop_requested && observer.stop_requested())) return {};
  if (waiting_.empty()) return {};
  return *waiting_.begin();
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

void Study::work(const Objective& objective, const StudyObserver& observer, Shared& shared) {
  std::unique_lock lock(shared.mutex);
  while (true) {
    // The results that this suggestion depends on must be there.
    const auto ready = [&] {
      const int64_t number = static_cast<int64_t>(trials_.size());
      return shared.running.empty() || *shared.running.begin() > number - options_.window;
    };
    while (!shared.end && !ready()) shared.changed.wait(lock);
    // Trials that were enqueued, or not finished before, come first: they have numbers already.
    const std::optional<int64_t> waiting = next_waiting(observer, shared);
    const auto end = waiting ? std::nullopt : end_reached(observer, shared);
    if (end) {
      shared.end = end;
      shared.changed.notify_all();
      return;
    }
    const int64_t number = waiting.value_or(static_cast<int64_t>(trials_.size()));
    if (waiting)
      take_up(number);
    else
      begin(number);
    shared.running.insert(number);
    if (storage_) storage_->begin(trials_.space(), trials_[static_cast<size_t>(number)]);
    const Point point = trials_[static_cast<size_t>(number)].point;
    lock.unlock();

    const Report report = [&](int64_t step, double value) {
      std::lock_guard inner(shared.mutex);
      Trial& trial = trials_.at(static_cast<size_t>(number));
      trial.intermediate[step] = value;
      if (storage_) storage_->report(trial, step, value);
      return !(pruner_ && pruner_->prune(trials_, trial));
    };
    Measurement measured;
    std::exception_ptr failure;
    try {
      measured = objective(point, report);
    } catch (...) {
      failure = std::current_exception();
    }

    lock.lock();
    shared.running.erase(number);
    Trial& trial = trials_.at(static_cast<size_t>(number));
    const bool unknown = std::any_of(measured.values.begin(), measured.values.end(),
                                     [](double x) { return std::isnan(x); });
    trial.values = std::move(measured.values);
    trial.constraints = std::move(measured.constraints);
    for (auto& [key, value] : measured.user_attributes) trial.user_attributes.set(key, value);
    trial.ended = microseconds_now();
    trial.state = TrialState::complete;
    if (measured.interrupted) {
      trial.state = TrialState::waiting;
      waiting_.insert(number);
      trial.values.clear();
      trial.intermediate.clear();
      trial.ended = 0;
    } else if (measured.pruned) {
      trial.state = TrialState::pruned;
      trial.values.clear();
      if (!trial.intermediate.empty() && !std::isnan(trial.intermediate.rbegin()->second))
        trial.values = {trial.intermediate.rbegin()->second};
    } else if (failure || unknown || trial.values.size() != trials_.objectives()) {
      trial.state = TrialState::fail;
      trial.values.clear();
      if (!measured.failure.empty()) trial.user_attributes.set("failure", measured.failure);
    }
    if (storage_) storage_->finish(trials_.space(), trial);
    if (failure && !shared.failure) {
      shared.failure = failure;
      shared.end = StudyEnd::interrupted;
    }
    if (observer.finished && !failure && trial.finished()) observer.finished(trials_, trial);
    shared.changed.notify_all();
  }
}

StudyEnd Study::run(const std::vector<Objective>& objectives, const StudyObserver& observer) {
  MASE_CHECK(static_cast<int>(objectives.size()) >= std::max(1, options_.jobs), "one per job");
  Shared shared;
  const auto guarded = [&](const Objective& objective) {
    try {
      work(objective, observer, shared);
    } catch (...) {
      std::lock_guard lock(shared.mutex);
      if (!shared.failure) shared.failure = std::current_exception();
      shared.end = StudyEnd::interrupted;
      shared.changed.notify_all();
    }
  };
  std::vector<std::thread> threads;
  for (int job = 1; job < options_.jobs; ++job)
    threads.emplace_back(guarded, std::cref(objectives[static_cast<size_t>(job)]));
  guarded(objectives.front());
  for (std::thread& thread : threads) thread.join();
  if (storage_) storage_->flush();
  if (shared.failure) std::rethrow_exception(shared.failure);
  return *shared.end;
}

std::vector<int64_t> best_trials(const Trials& trials) {
  std::vector<Losses> losses;
  std::vector<int64_t> numbers;
  for (const Trial& trial : trials) {
    if (trial.state != TrialState::complete || !trial.feasible()) continue;
    Losses loss;
    for (size_t k = 0; k < trials.objectives(); ++k) loss.push_back(trials.loss(trial, k));
    losses.push_back(std::move(loss));
    numbers.push_back(trial.number);
  }
  std::vector<int64_t> best;
  for (const size_t i : pareto_front(losses)) best.push_back(numbers[i]);
  // Of several equally good ones a single objective has one best: the first.
  if (trials.objectives() == 1 && best.size() > 1) best.resize(1);
  return best;
}

}  // namespace mase::search
