// SPDX-License-Identifier: Apache-2.0
// A search over an experiment's network: every configuration is measured as the spec says, trials
// go to a storage, and what was found is described in MASE's forms.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "mase/run/experiment.h"
#include "mase/run/search_spec.h"
#include "mase/search/ptq_evaluator.h"
#include "mase/search/quantize_space.h"
#include "mase/search/storage.h"

namespace mase {

// A figure measured again on other rows, with the 95 % interval of its share (Wilson, 1927).
struct TestScore {
  int64_t number = 0;  // of the trial
  double accuracy = 0, low = 0, high = 0, loss = 0;
  int64_t rows = 0;
};

class SearchExperiment {
 public:
  // The experiment is prepared and outlives this. Everything that can be wrong is told here.
  SearchExperiment(const Experiment& experiment, SearchSpec spec);

  const SearchSpec& spec() const { return spec_; }
  const search::Space& space() const { return space_->space(); }
  const std::vector<std::string>& objectives() const { return objectives_; }
  const std::vector<bool>& maximise() const { return maximise_; }
  const std::vector<std::string>& unused_seeds() const { return space_->unused(); }
  int64_t rows() const;  // that a configuration is measured on

  // Goes on with what the storage (null: none) has of this study.
  search::StudyEnd run(search::Storage* storage, const std::string& study,
                       const search::StudyObserver& observer);
  const search::Trials& trials() const { return *trials_; }

  // MASE's files and table.
  Value best_record() const;
  Value log_record() const;
  std::string best_table() const;

  Value configuration(int64_t number) const;  // a file for ch transform
  Graph network(int64_t number) const;
  // The best trials on the test rows; empty if these were searched on, or there are no classes.
  std::vector<TestScore> test_best() const;

 private:
  search::Measurement measure(const search::Point& point, search::PrefixRunner& runner) const;

  const Experiment& experiment_;
  SearchSpec spec_;
  std::unique_ptr<search::QuantizeSpace> space_;
  std::unique_ptr<search::PtqEvaluator> evaluator_;
  std::vector<std::string> objectives_;
  std::vector<bool> maximise_;
  std::unique_ptr<search::Trials> trials_;
};

}  // namespace mase
