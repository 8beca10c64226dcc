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
#include "mase/run/search/search_spec.h"
#include "mase/search/measure/evaluator.h"
#include "mase/search/measure/racing.h"
#include "mase/search/storages/storage.h"

namespace mase {

class KeptNetworks;

// The best trials measured again, on rows that the search did not see.
struct TestScore {
  int64_t number = 0;        // of the trial, as tables and files have it
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
  int64_t number = 0;        // of the trial, as tables and files have it
  Dict before, after;        // software figures on the rows of the search
  std::string failure = {};  // why it was not trained
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

// One network of the front.
struct FrontMember {
  int64_t place = 0;               // of the trial among trials()
  int64_t number = 0;              // of the trial, as tables and files have it
  std::vector<int64_t> same = {};  // numbers of other trials that are this very network
};

class SearchExperiment {
 public:
  using Stop = std::function<bool()>;  // asked now and then; true: leave off

  // The experiment is prepared and outlives this. Everything that can be wrong is told here.
  SearchExperiment(const Experiment& experiment, SearchSpec spec);
  ~SearchExperiment();

  const SearchSpec& spec() const { return spec_; }
  const search::Space& space() const { return space_->space(); }
  const std::vector<std::string>& objectives() const { return objectives_; }
  const std::vector<bool>& maximise() const { return maximise_; }
  std::vector<std::string> unused_seeds() const { return space_->unused(); }
  int64_t rows() const;           // that a configuration is measured on,
  int64_t split_rows() const;     // of so many
  std::string rows_text() const;  // "validation rows", "512 of 1,600 validation rows"
  // Batch norms that were folded into layers before the search, because a figure needs it.
  const std::vector<std::string>& folded() const { return folded_; }

  // Goes on with what the storage (null: none) has of this study. A study of another network, other
  // rows or other settings of what is measured is refused.
  search::StudyEnd run(search::Storage* storage, const std::string& study,
                       const search::StudyObserver& observer);
  const search::Trials& trials() const { return *trials_; }
  bool is_over() const { return trials_ != nullptr; }
  // What a study must have been measured with, by name, for study attributes.
  Dict identity() const;
  // What the study has otherwise and was accepted.
  const std::vector<std::string>& differences() const { return differences_; }

  // Many short searches that are not kept: each sampler with so many seeds.
  Comparison compare(const std::vector<const search::SamplerRecord*>& samplers, int64_t seeds,
                     const search::StudyObserver& observer) const;

  // The best trials, each network once, the cheapest first; those of another space, which Optuna
  // may have added, left out.
  const std::vector<FrontMember>& front() const { return front_; }

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
  // Figures of the search, costs and what the test rows say, side by side.
  std::string test_table(const std::vector<TestScore>& scores) const;

  Value configuration(int64_t place) const;  // a file for ch transform
  // Trained as it was in the search: the same bits. Nothing if that was stopped.
  std::optional<Graph> network(int64_t place, const Stop& stop = {}) const;
  // The second level, where the file says front_only: the best trials, trained from the network's
  // weights. `started` is told each number; false from it ends.
  std::vector<TrainedBest> train_best(
      const std::function<bool(size_t index, size_t count)>& started) const;
  // What one parameter alone costs: each value of each in the most accurate trial, measured. Null
  // where a measurement is a training, or nothing is there to change.
  Value sensitivity(const Stop& stop = {}) const;
  // The best trials on the test rows; empty if these were searched on, or there are no classes.
  std::vector<TestScore> test_best(const Stop& stop = {}) const;

 private:
  // Beyond so many trials the parameters' columns say what was tried, log.json stays readable, and
  // of two figures only what the search is for is measured.
  static constexpr size_t most_described = 20000;

  void choose_figures(Problems& problems);
  void fold_batch_norms();
  void make_space(Problems& problems);
  void choose_sampler();
  void make_evaluators();
  search::SamplerSetup sampler_setup() const;
  search::Measurement measured(const search::Figures& figures) const;
  search::Measurement measurement_of(search::Evaluator::Result result) const;
  Value log_row(const search::Trial& trial) const;
  search::Objective objective(const search::StudyObserver& observer) const;
  void check_training() const;
  void check_racing() const;
  void check_identity(search::Storage& storage, const std::string& study);
  search::Measurement raced(const search::Point& point, search::Evaluator::Session& session) const;
  void complete_best();
  void find_front();

  const Experiment& experiment_;
  SearchSpec spec_;
  Graph graph_;  // the experiment's network, its batch norms folded where a figure needs it
  std::vector<std::string> folded_, differences_;
  std::unique_ptr<search::CandidateSpace> space_;
  search::FigureSet figures_;      // of every trial,
  search::FigureSet all_figures_;  // and of the best
  std::unique_ptr<search::Evaluator> evaluator_;
  std::unique_ptr<search::Evaluator> trained_;  // of the second level
  std::unique_ptr<search::Race> race_;
  std::vector<std::string> objectives_;
  std::vector<bool> maximise_;
  std::unique_ptr<search::Trials> trials_;
  std::vector<FrontMember> front_;
  std::unique_ptr<KeptNetworks> kept_;  // trained ones of trials that are best so far
};

// What the page of a search is drawn from (search.json): while it runs, and at its end, with
// importances, sensitivity and the test rows.
Value search_record(const SearchExperiment& search, const search::Trials& trials,
                    const std::string& sampler);
Value search_record(const SearchExperiment& search, const std::vector<TestScore>& scores,
                    const SearchExperiment::Stop& stop = {});

}  // namespace mase
