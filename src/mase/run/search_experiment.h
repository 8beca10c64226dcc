// SPDX-License-Identifier: Apache-2.0
// A search over an experiment's network: every configuration is measured as the spec says, trials
// go to a storage, and what was found is described in MASE's forms.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mase/run/experiment.h"
#include "mase/run/search_spec.h"
#include "mase/search/candidate_evaluator.h"
#include "mase/search/ptq_evaluator.h"
#include "mase/search/racing.h"
#include "mase/search/storage.h"

namespace mase {

// The best trials measured again, on rows that the search did not see.
struct TestScore {
  int64_t number = 0;        // of the trial
  double searched = 0;       // its accuracy on the rows of the search
  double accuracy = 0;       // on the test rows,
  double low = 0, high = 0;  // with the 95 % interval of its share (Wilson, 1927)
  double loss = 0;
  int64_t rows = 0;
  // Against the one with the best accuracy in the search, row by row: the difference and its 95 %
  // interval. All of them met the same rows, so it is narrower than the intervals suggest.
  double difference = 0, difference_low = 0, difference_high = 0;
  bool is_reference = false;  // it is that one
};

// One of the best trials, trained on after the search with the formats it was found with.
struct TrainedBest {
  int64_t number = 0, shown = 0;  // of the trial
  Dict before, after;             // software figures on the rows of the search
  std::string failure = {};       // why it was not trained
  Graph network = {};
};

// What one sampler reached after each trial, over its seeds.
struct ComparedSampler {
  std::string name;
  std::vector<double> median, low, high;  // quartiles
  int64_t found = 0, seeds = 0;           // of the seeds, how many found the best that is known
  std::optional<double> trials_to_best;   // the median; none if half of them did not
  double suggestion_ms = 0;
};
struct Comparison {
  std::string measure;         // "best accuracy", or with several objectives "hypervolume"
  double best = 0;             // over all that was measured
  int64_t configurations = 0;  // that were measured
  std::vector<ComparedSampler> samplers;
  std::vector<std::string> left_out;  // samplers that cannot, and why
};
Value comparison_record(const Comparison& comparison);
std::string comparison_table(const Comparison& comparison);

class SearchExperiment {
 public:
  // The experiment is prepared and outlives this. Everything that can be wrong is told here.
  SearchExperiment(const Experiment& experiment, SearchSpec spec);
  ~SearchExperiment();

  const SearchSpec& spec() const { return spec_; }
  const search::Space& space() const { return space_->space(); }
  const std::vector<std::string>& objectives() const { return objectives_; }
  const std::vector<bool>& maximise() const { return maximise_; }
  std::vector<std::string> unused_seeds() const { return space_->unused(); }
  int64_t rows() const;  // that a configuration is measured on

  // Goes on with what the storage (null: none) has of this study.
  search::StudyEnd run(search::Storage* storage, const std::string& study,
                       const search::StudyObserver& observer);
  const search::Trials& trials() const { return *trials_; }

  // Many short searches that are not kept: each sampler with so many seeds.
  Comparison compare(const std::vector<const search::SamplerRecord*>& samplers, int64_t seeds,
                     const search::StudyObserver& observer) const;

  // Numbers of the best trials; those of another space, which Optuna may have added, left out.
  std::vector<int64_t> best() const;

  // Seconds for one configuration on its own, and for every configuration in the order of an
  // exhaustive search, both with one thread, from a few that are measured here; nothing where that
  // takes long or shares no work.
  struct Pace {
    double one = 0, all = 0;
  };
  std::optional<Pace> pace() const;

  // MASE's files and table.
  Value best_record() const;
  void write_log(const std::string& path) const;  // log.json: every trial
  std::string best_table() const;

  Value configuration(int64_t number) const;  // a file for ch transform
  // Trained as it was in the search: the same bits.
  Graph network(int64_t number) const;
  // The second level, where the file says front_only: the best trials, trained from the network's
  // weights. `started` is told each number; false from it ends.
  std::vector<TrainedBest> train_best(
      const std::function<bool(size_t index, size_t count)>& started) const;
  // What one parameter alone costs: each value of each in the most accurate trial, measured. Null
  // where a measurement is a training, or nothing is there to change.
  Value sensitivity() const;
  // The best trials on the test rows; empty if these were searched on, or there are no classes.
  std::vector<TestScore> test_best() const;

 private:
  // Beyond so many trials the parameters' columns say what was tried, log.json stays readable, and
  // of two figures only what the search is for is measured.
  static constexpr size_t most_described = 20000;

  search::Measurement measured(const search::Figures& figures) const;
  Value log_row(const search::Trial& trial) const;
  search::Objective objective(const search::StudyObserver& observer) const;
  void check_training() const;
  void check_racing() const;
  search::Measurement raced(const search::Point& point,
                            search::PtqEvaluator::Session& session) const;
  void complete_best();

  const Experiment& experiment_;
  SearchSpec spec_;
  std::unique_ptr<search::CandidateSpace> space_;
  std::unique_ptr<search::PtqEvaluator> formats_;           // number formats alone, untrained
  std::unique_ptr<search::CandidateEvaluator> candidates_;  // any candidate
  std::unique_ptr<search::CandidateEvaluator> trained_;     // of the second level
  std::unique_ptr<search::Race> race_;
  std::vector<std::string> objectives_;
  std::vector<bool> maximise_;
  std::unique_ptr<search::Trials> trials_;
  struct Kept;  // trained networks of trials that are best so far
  std::unique_ptr<Kept> kept_;
};

// What the page of a search is drawn from (search.json): while it runs, and at its end, with
// importances, sensitivity and the test rows.
Value search_record(const SearchExperiment& search, const search::Trials& trials,
                    const std::string& sampler);
Value search_record(const SearchExperiment& search, const std::vector<TestScore>& scores);

}  // namespace mase
