// SPDX-License-Identifier: Apache-2.0
// Runs that are compared: which options differ among them, which repeat one setting with another
// seed, and what is measured of each.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mase/report/pages/run_folder.h"

namespace mase {

struct CompareFigure {
  std::string title;
  bool percent, up;  // up: higher is better
  std::optional<double> (*of)(const RunData&);
  std::string text(const std::optional<double>& value) const;
};

// Those that at least one run has.
std::vector<CompareFigure> compare_figures(const std::vector<RunData>& runs);

struct OptionColumn {
  std::string name;
  std::vector<std::string> values;  // one for each run
};

std::map<std::string, std::string> options_of(const RunData& run);  // effective, with the seed
std::string data_identity(const RunData& run);                      // name, variant and content
std::vector<std::string> data_labels(const std::vector<RunData>& runs);
bool same_data(const std::vector<RunData>& runs);

// Options in which the runs differ, but for those that say nothing about a result.
std::vector<OptionColumn> differing_options(const std::vector<RunData>& runs);

// Distinct values, numbers by size and before words.
std::vector<std::string> ordered_values(std::vector<std::string> values);

struct RunGroup {
  std::vector<std::string> values;  // of the columns
  std::vector<size_t> runs;
};

std::vector<RunGroup> run_groups(const std::vector<RunData>& runs,
                                 const std::vector<OptionColumn>& columns);

// A deviation only where the runs differ in nothing but the seed.
struct GroupSummary {
  double mean = 0;
  size_t count = 0;
  std::optional<double> deviation;
};

std::optional<GroupSummary> summary_of(const std::vector<RunData>& runs,
                                       const std::vector<size_t>& which,
                                       std::optional<double> (*of)(const RunData&));

}  // namespace mase
