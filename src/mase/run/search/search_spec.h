// SPDX-License-Identifier: Apache-2.0
// [search] of a configuration: what is searched over, how, and for what. MASE's keys; a key that
// nobody reads is an error.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mase/run/spec.h"
#include "mase/search/samplers/sampler.h"
#include "mase/search/spaces/candidate.h"
#include "mase/search/study/study.h"

namespace mase {

struct SearchMetric {
  std::string name;
  double scale = 1;
  std::optional<bool> maximise = {};  // none: it is only limited
  std::optional<double> lower_bound, upper_bound;
  Position position = {};
};

struct SearchSpec {
  const search::SpaceRecord* space = nullptr;  // null: only training is searched over
  std::string by = "name";
  Value seed = Dict{};
  std::string seed_path = "search.search_space.seed";
  Value train = {};  // [search.search_space.train]; null: its options are not searched over

  const search::SamplerRecord* sampler = nullptr;  // null: what suits the space
  Value sampler_options = Dict{};
  Value pruner = {};                       // a name, or a table with one; null: none
  std::vector<SearchMetric> metrics = {};  // in alphabetical order
  bool sum_scaled = false;
  bool sum_maximise = true;
  search::StudyOptions study = {};
  // Candidates that cannot enter the front are given up before they met all rows, with this risk of
  // being wrong; none: every candidate meets all.
  std::optional<double> racing = {};

  std::string split = "validation";
  std::optional<int64_t> rows = {};  // the first so many; not said: all
  double compare_to = 32;
  std::vector<std::string> hardware = {};  // figures that are kept, beside those of metrics

  bool trained = false;     // every candidate is trained before it is measured
  bool front_only = false;  // only the best are trained, after the search
  bool warm_start = true;   // from the network's weights
  int64_t train_rows = 0;   // the first so many; 0: all
  Dict train_changes = {};  // what basic_train says besides the options of training
  std::function<TrainSpec(const Dict& changes)> training = {};
  Dict training_settings = {};      // the options of training by name, for the study's identity
  bool accept_differences = false;  // go on with a study that was measured otherwise

  std::vector<std::string> notices = {};  // what the user should know
};

// Every mistake of the tables is added to the problems.
SearchSpec search_spec(const Settings& settings, Problems& problems);
// The options of a search alone: --sampler, --n-trials, --storage, ...
std::vector<Field> search_options();
// The optimiser, the schedule and the loss that training has where the space does not say.
Value chosen_members(const SearchSpec& spec);
// For commands that do not search: a key of [search] that nobody reads is a mistake in every one of
// them. What its values name matters to a search alone.
void check_search_keys(const Settings& settings, Problems& problems);

}  // namespace mase
