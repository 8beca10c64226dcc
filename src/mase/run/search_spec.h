// SPDX-License-Identifier: Apache-2.0
// [search] of a configuration: what is searched over, how, and for what. MASE's keys; a key that
// nobody reads is an error.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/run/settings.h"
#include "mase/search/sampler.h"
#include "mase/search/study.h"

namespace mase {

struct SearchMetric {
  std::string name;
  double scale = 1;
  std::optional<bool> maximise = {};  // none: it is only limited
  std::optional<double> lower_bound, upper_bound;
  Position position = {};
};

struct SearchSpec {
  std::string space = "graph/quantize/mixed_precision_ptq";
  std::string by = "name";
  Value seed = Dict{};
  std::string seed_path = "search.search_space.seed";

  const search::SamplerRecord* sampler = nullptr;
  Value sampler_options = Dict{};
  std::vector<SearchMetric> metrics = {};  // in alphabetical order
  bool sum_scaled = false;
  bool sum_maximise = true;
  search::StudyOptions study = {};

  std::string split = "validation";
  int64_t rows = 512;
  double compare_to = 32;
  std::vector<std::string> hardware = {};  // figures that are kept, beside those of metrics
  std::vector<std::string> notices = {};   // what the user should know
};

// Every mistake of the tables is added to the problems.
SearchSpec search_spec(const Settings& settings, Problems& problems);

}  // namespace mase
