// SPDX-License-Identifier: Apache-2.0
#include "mase/search/study/study.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "mase/search/storages/storage.h"
#include "mase/search/study/pareto.h"

namespace mase::search {

using Clock = std::chrono::steady_clock;

int64_t microseconds_now() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

struct Study::Shared {
  std::mutex mutex;
  std::condition_variable changed;
  Clock::time_point start = Clock::now();
  std::optional<StudyEnd> end;
  std::exception_ptr failure;
  double seconds() const { return std::chrono::duration<double>(Clock::now() - start).count(); }
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
  if (options_.seconds > 0 && shared.seconds() >= options_.seconds) return StudyEnd::timeout;
  if (!waiting_.empty()) return {};
  if (options_.trials >= 0 && static_cast<int64_t>(trials_.size()) >= options_.trials)
    return StudyEnd::all_done;
  if (!options_.repeats && static_cast<double>(trials_.distinct()) >= trials_.space().size())
    return StudyEnd::space_exhausted;
  return {};
}

void Study::measure(const Objective& objective, const StudyObserver& observer,
                    const std::vector<int64_t>& leased, Shared& shared,
                    std::unique_lock<std::mutex>& lock) {
  const auto fail = [&] {
    if (!shared.failure) shared.failure = std::current_exception();
    shared.end = StudyEnd::interrupted;
  };
  const Clock::time_point start = Clock::now();
  size_t done = 0;
  if (objective.measure_all && leased.size() > 1) {
    std::vector<Point> points;
    for (const int64_t number : leased)
      points.push_back(trials_[static_cast<size_t>(number)].point);
    lock.unlock();
    std::vector<Measurement> measured;
    std::exception_ptr failure;
    try {
      measured = objective.measure_all(points);
    } catch (...) {
      failure = std::current_exception();
      measured.resize(points.size());
    }
    lock.lock();
    if (failure && !shared.failure) shared.failure = failure;
    if (failure) shared.end = StudyEnd::interrupted;
    for (; done < leased.size(); ++done)
      record(leased[done], std::move(measured[done]), failure != nullptr, observer);
  }
  for (; done < leased.size(); ++done) {
    const int64_t number = leased[done];
    const bool over = shared.end || (observer.stop_requested && observer.stop_requested());
    if (over && done > 0) {  // what was leased and not begun is left to others
      Measurement none;
      none.interrupted = true;
      record(number, std::move(none), false, observer);
      continue;
    }
    const Point point = trials_[static_cast<size_t>(number)].point;
    const Report report = [&](int64_t step, double value) {
      std::lock_guard inner(shared.mutex);
      Trial& trial = trials_.at(static_cast<size_t>(number));
      trial.intermediate[step] = value;
      if (storage_) storage_->report(trial, step, value);
      return !(pruner_ && pruner_->prune(trials_, trial));
    };
    Measurement measured;
    bool failed = false;
    lock.unlock();
    try {
      measured = objective.measure(point, report);
      lock.lock();
    } catch (...) {
      lock.lock();
      fail();
      failed = true;
    }
    record(number, std::move(measured), failed, observer);
    shared.changed.notify_all();
  }
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  measured_ += static_cast<int64_t>(leased.size());
  // Recent trials count more: what the first ones had to prepare is soon forgotten.
  const double each = seconds / static_cast<double>(leased.size());
  mean_seconds_ = mean_seconds_ == 0 ? each : (mean_seconds_ + each) / 2;
  shared.changed.notify_all();
}

void Study::record(int64_t number, Measurement measured, bool failed,
                   const StudyObserver& observer) {
  own_.erase(number);
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
    if (trials_.objectives() == 1 && !trial.intermediate.empty() &&
        !std::isnan(trial.intermediate.rbegin()->second))
      trial.values = {trial.intermediate.rbegin()->second};
  } else if (failed || unknown || trial.values.size() != trials_.objectives()) {
    trial.state = TrialState::fail;
    trial.values.clear();
    if (!measured.failure.empty()) trial.user_attributes.set("failure", measured.failure);
  }
  if (storage_) storage_->finish(trials_.space(), trial);
  unwritten_ = true;
  if (observer.finished && !failed && trial.finished()) observer.finished(trials_, trial);
}

void Study::work(const Objective& objective, const StudyObserver& observer, Shared& shared) {
  std::unique_lock lock(shared.mutex);
  constexpr auto shortest = std::chrono::milliseconds(1), longest = std::chrono::milliseconds(25);
  auto pause = shortest;
  double asked = -1;  // when the storage was asked last, by this thread
  while (!shared.end) {
    const bool shares = storage_ && storage_->shared();
    // Others are asked again when they wrote something, and now and then: not all of them tell.
    const bool ask = !shares || asked < 0 || storage_->changed() || shared.seconds() > asked + 1;
    std::vector<int64_t> leased;
    if (ask && !(observer.stop_requested && observer.stop_requested())) {
      leased = lease(objective, observer, shared);
      asked = shared.seconds();
    }
    if (!leased.empty()) {
      measure(objective, observer, leased, shared, lock);
      pause = shortest;
      asked = -1;
      continue;
    }
    const std::optional<StudyEnd> end = end_reached(observer, shared);
    const bool given_up = end == StudyEnd::interrupted || end == StudyEnd::timeout;
    // Another process may die yet, and its trials are ours then.
    if (end && (given_up || !others_run())) {
      shared.end = end;
      break;
    }
    if (shares && storage_->changed()) {  // while it was asked
      asked = -1;
      continue;
    }
    const size_t before = own_.size();
    if (shares && before == 0) {  // nothing comes but from others
      lock.unlock();
      storage_->wait(pause);
      lock.lock();
    } else {
      shared.changed.wait_for(lock, shares ? pause : longest);
    }
    pause = std::min(pause * 2, longest);
    if (own_.size() != before) asked = -1;
  }
  shared.changed.notify_all();
}

StudyEnd Study::run(const std::vector<Objective>& objectives, const StudyObserver& observer) {
  MASE_CHECK(static_cast<int>(objectives.size()) >= std::max(1, options_.jobs), "one per job");
  Shared shared;
  if (storage_) {
    options_.window = storage_->agreed("mase:window", options_.window);
    storage_->beat(options_.heartbeat);
    for (Trial& trial : storage_->news(trials_.space())) {
      const bool measured =
          trial.state == TrialState::complete || trial.state == TrialState::pruned;
      if (measured && !trial.in_space)
        throw Error("--study",
                    fmt::format("trial {} of study '{}' has parameters or values that are not in "
                                "this search space",
                                trial.shown(), printable(trials_.study_name())),
                    "give another --study, or the space that it was made with");
      take(std::move(trial));
    }
  }
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
