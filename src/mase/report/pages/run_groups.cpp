// SPDX-License-Identifier: Apache-2.0
#include "mase/report/pages/run_groups.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "mase/base/text.h"
#include "mase/report/pages/run_parts.h"
#include "mase/report/pages/shown.h"

namespace mase {

std::string CompareFigure::text(const std::optional<double>& value) const {
  return percent ? shown::percent(value) : shown::brief(value);
}

std::vector<CompareFigure> compare_figures(const std::vector<RunData>& runs) {
  std::vector<CompareFigure> known = {
      {"best validation accuracy", true, true,
       [](const RunData& run) { return best_of(run, "val_acc_epoch"); }},
      {"validation accuracy, best epoch", true, true,
       [](const RunData& run) { return at_best_epoch(run, "val_acc_epoch"); }},
      {"best validation loss", false, false,
       [](const RunData& run) { return best_of(run, "val_loss_epoch"); }},
      {"test accuracy", true, true, [](const RunData& run) { return accuracy_on(run, "test"); }},
      {"accuracy after the transform", true, true, [](const RunData& run) {
         return shown::number(
             shown::entry(shown::entry(run.run["transform"], "accuracy"), "after"));
       }}};
  std::erase_if(known, [&](const CompareFigure& figure) {
    return std::none_of(runs.begin(), runs.end(),
                        [&](const RunData& run) { return figure.of(run).has_value(); });
  });
  return known;
}

std::map<std::string, std::string> options_of(const RunData& run) {
  std::map<std::string, std::string> found;
  for (const Value& option : shown::items(run.run["options"]))
    if (option.is_dict() && option["name"].is_string())
      found[option["name"].as_string()] = shown::text(
          option.as_dict().contains("effective") ? option["effective"] : option["default"]);
  if (!run.run["seed"].is_null()) found.try_emplace("seed", shown::text(run.run["seed"]));
  return found;
}

std::string data_identity(const RunData& run) {
  return data_name(run.run) + " " + shown::word(shown::entry(run.run["dataset"], "identity"));
}

bool same_data(const std::vector<RunData>& runs) {
  std::set<std::string> seen;
  for (const RunData& run : runs) seen.insert(data_identity(run));
  return seen.size() <= 1;
}

std::vector<std::string> data_labels(const std::vector<RunData>& runs) {
  std::map<std::string, std::set<std::string>> namesakes;
  for (const RunData& run : runs) namesakes[data_name(run.run)].insert(data_identity(run));
  std::vector<std::string> labels;
  for (const RunData& run : runs) {
    std::string name = data_name(run.run);
    if (namesakes[name].size() > 1) {
      std::string identity = shown::word(shown::entry(run.run["dataset"], "identity"));
      identity = replace_all(identity, "sha256:", "");
      name += " " + (identity.empty() ? "unidentified" : identity.substr(0, 8));
    }
    labels.push_back(name.empty() ? "unknown data" : name);
  }
  return labels;
}

std::vector<OptionColumn> differing_options(const std::vector<RunData>& runs) {
  // Where a run was put and how it was watched tell nothing about its result.
  static const std::set<std::string> ignored = {
      "project", "project_dir", "seed",  "num_workers", "log_level",   "plot",
      "ascii",   "progress",    "quiet", "debug",       "no_warnings", "threads"};
  std::vector<std::map<std::string, std::string>> all;
  std::set<std::string> names;
  for (const RunData& run : runs) {
    all.push_back(options_of(run));
    for (const auto& [name, value] : all.back()) names.insert(name);
  }
  const auto varies = [](const std::vector<std::string>& values) {
    return std::set<std::string>(values.begin(), values.end()).size() > 1;
  };
  std::vector<OptionColumn> columns;
  const auto add = [&](const std::string& name, std::vector<std::string> values) {
    if (varies(values)) columns.push_back({name, std::move(values)});
  };
  std::vector<std::string> models;
  for (const RunData& run : runs)
    models.push_back(shown::word(shown::entry(run.run["model"], "name")));
  if (!names.count("model")) add("model", models);
  const bool same = same_data(runs);
  if (!same) add("data set", data_labels(runs));
  for (const std::string& name : names) {
    if (ignored.count(name) || (name == "dataset" && !same)) continue;
    std::vector<std::string> values;
    for (const auto& one : all) {
      const auto found = one.find(name);
      values.push_back(found == one.end() ? "–" : found->second);
    }
    add(name, std::move(values));
  }
  return columns;
}

namespace {

bool value_before(const std::string& a, const std::string& b) {
  const auto x = parse_number(a), y = parse_number(b);
  if (x && y) return *x < *y;
  if (x || y) return x.has_value();
  return a < b;
}

}  // namespace

std::vector<std::string> ordered_values(std::vector<std::string> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  std::stable_sort(values.begin(), values.end(), value_before);
  return values;
}

std::vector<RunGroup> run_groups(const std::vector<RunData>& runs,
                                 const std::vector<OptionColumn>& columns) {
  std::map<std::vector<std::string>, std::vector<size_t>> found;
  for (size_t i = 0; i < runs.size(); ++i) {
    std::vector<std::string> values;
    for (const OptionColumn& column : columns) values.push_back(column.values[i]);
    found[values].push_back(i);
  }
  std::vector<RunGroup> groups;
  for (auto& [values, which] : found) groups.push_back({values, which});
  std::stable_sort(groups.begin(), groups.end(), [](const RunGroup& a, const RunGroup& b) {
    for (size_t i = 0; i < a.values.size(); ++i) {
      if (value_before(a.values[i], b.values[i])) return true;
      if (value_before(b.values[i], a.values[i])) return false;
    }
    return false;
  });
  return groups;
}

std::optional<GroupSummary> summary_of(const std::vector<RunData>& runs,
                                       const std::vector<size_t>& which,
                                       std::optional<double> (*of)(const RunData&)) {
  std::vector<double> values;
  std::set<std::string> seeds;
  bool seeded = true;
  for (const size_t i : which) {
    const auto value = of(runs[i]);
    if (!value) continue;
    values.push_back(*value);
    const auto options = options_of(runs[i]);
    const auto seed = options.find("seed");
    seeded = seeded && seed != options.end() && seed->second != "–";
    if (seed != options.end()) seeds.insert(seed->second);
  }
  if (values.empty()) return {};
  GroupSummary summary;
  summary.count = values.size();
  for (const double value : values) summary.mean += value / static_cast<double>(values.size());
  if (values.size() > 1 && seeded && seeds.size() == values.size()) {
    double squares = 0;
    for (const double value : values) squares += (value - summary.mean) * (value - summary.mean);
    summary.deviation = std::sqrt(squares / static_cast<double>(values.size() - 1));
  }
  return summary;
}

}  // namespace mase
