// SPDX-License-Identifier: Apache-2.0
// The loop of a search: asks the sampler, has the configuration measured, tells the result, in as
// many threads as wanted. With a window of w the suggestion of trial i sees the results of trials
// before i - w + 1 and only the configurations of the others, so the trials of a search depend on
// the seed and the window, not on who was faster. Where the storage is shared, other processes do
// the same on the same study: trials are leased several at a time in one transaction, which also
// brings what the others did. A trial whose process died is tried again under its old place here
// and a new number in the storage, so that losses change nothing either.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mase/search/pruners/pruner.h"
#include "mase/search/samplers/sampler.h"
#include "mase/search/study/trial.h"

namespace mase::search {

class Storage;

// What came of one configuration.
struct Measurement {
  std::vector<double> values = {};  // objectives; not-a-number in one: the trial failed
  std::vector<double> constraints = {};
  Dict user_attributes = {};
  bool pruned = false;
  bool interrupted = false;  // it was not finished: it is tried again when the search goes on
  std::string failure = {};  // why nothing was measured
};

// Asks whether to go on after a value on the way; false: the trial is pruned.
using Report = std::function<bool(int64_t step, double value)>;

struct Objective {
  std::function<Measurement(const Point& point, const Report& report)> measure;
  // The same for several at once, where they share work; empty: one by one.
  std::function<std::vector<Measurement>(std::span<const Point> points)> measure_all = {};
  int64_t at_once = 1;  // as many as are worth it

  template <class Measure>
  Objective(Measure one) : measure(std::move(one)) {}
};

struct StudyOptions {
  uint64_t seed = 0;
  int64_t trials = -1;       // in all, those of an earlier run included; -1: every configuration
  double seconds = 0;        // start none after so long; 0: no limit
  int jobs = 1;              // trials at a time
  int64_t window = 0;        // 0: as many as jobs
  bool repeats = false;      // a configuration may be tried again
  bool independent = false;  // suggestions do not depend on results (SamplerRecord::independent)
  double heartbeat = 10;     // seconds; a process that was silent for two of them is taken for dead
};

struct StudyObserver {
  std::function<void(const Trials& trials, const Trial& trial)> finished = {};  // under the lock
  std::function<bool()> stop_requested = {};
};

enum class StudyEnd { all_done, space_exhausted, timeout, interrupted };

class Study {
 public:
  // `storage` may be null; the trials it holds already are in `trials`.
  Study(Trials trials, std::unique_ptr<Sampler> sampler, std::unique_ptr<Pruner> pruner,
        Storage* storage, StudyOptions options);
  ~Study();

  // One objective for each job: they are called at the same time. An exception of one ends the
  // search after what is running, and is thrown.
  StudyEnd run(const std::vector<Objective>& objectives, const StudyObserver& observer = {});

  const Trials& trials() const { return trials_; }
  Trials take_trials() { return std::move(trials_); }
  double sampler_seconds() const { return sampler_seconds_; }  // spent on suggestions

 private:
  struct Shared;
  void work(const Objective& objective, const StudyObserver& observer, Shared& shared);
  std::vector<int64_t> lease(const Objective& objective, const StudyObserver& observer,
                             Shared& shared);
  void pick(int64_t most, const StudyObserver& observer, Shared& shared,
            std::vector<int64_t>& leased);
  int64_t lease_size(const Objective& objective) const;
  bool may_begin(int64_t number) const;
  bool others_run() const;
  void take(Trial news);
  bool lost_were_found();
  void begin(int64_t number);
  void take_up(int64_t number);
  // Held when it is called and when it returns or throws; not while something is measured.
  void measure(const Objective& objective, const StudyObserver& observer,
               const std::vector<int64_t>& leased, Shared& shared,
               std::unique_lock<std::mutex>& lock);
  void record(int64_t number, Measurement measured, bool failed, const StudyObserver& observer);
  std::optional<StudyEnd> end_reached(const StudyObserver& observer, const Shared& shared) const;

  Trials trials_;
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<Pruner> pruner_;
  Storage* storage_;
  StudyOptions options_;
  double sampler_seconds_ = 0;
  std::set<int64_t> own_;                // trials that this process runs
  std::set<int64_t> waiting_;            // trials that somebody enqueued, or that were not finished
  std::set<int64_t> elsewhere_;          // trials that processes with a heartbeat run
  std::map<int64_t, int64_t> place_of_;  // of a number in the storage
  double mean_seconds_ = 0;              // of a trial
  int64_t measured_ = 0;
  bool unwritten_ = false;  // trials that the storage may still keep to itself
  double next_look_ = 0;    // for lost trials, in seconds since the start
};

// Trials that no other complete feasible trial dominates, by number; with one objective the best.
std::vector<int64_t> best_trials(const Trials& trials);

int64_t microseconds_now();

}  // namespace mase::search
