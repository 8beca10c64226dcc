// SPDX-License-Identifier: Apache-2.0
#include "mase/run/search/study_record.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "mase/base/address.h"
#include "mase/base/text.h"
#include "mase/search/measure/figure.h"
#include "mase/search/storages/storage.h"
#include "mase/search/study/study.h"

namespace mase {
namespace {

using search::Distribution;
using search::StoredParameter;
using search::StoredStudy;
using search::StoredTrial;
using search::Trial;
using search::Trials;

std::string chosen_study(search::Storage& storage, const std::string& address,
                         const std::string& wanted) {
  const std::vector<std::string> names = storage.studies();
  const std::string place = masked_address(address);
  if (names.empty()) throw Error(place, "holds no study");
  if (wanted.empty() && names.size() == 1) return names.front();
  if (std::find(names.begin(), names.end(), wanted) != names.end()) return wanted;
  throw Error(
      place,
      wanted.empty() ? fmt::format("holds {} studies", names.size())
                     : fmt::format("has no study '{}'", printable(wanted)),
      wanted.empty() ? "name one with --study: " + join(names, ", ") : suggestion(wanted, names));
}

// Optuna lets a range change from trial to trial: what holds both.
Distribution holding(Distribution a, const Distribution& b) {
  if (a.kind != b.kind) return a;
  for (const Value& choice : b.choices)
    if (std::find(a.choices.begin(), a.choices.end(), choice) == a.choices.end())
      a.choices.push_back(choice);
  a.low = std::min(a.low, b.low);
  a.high = std::max(a.high, b.high);
  a.log = a.log && b.log;
  if (a.step != b.step) a.step = 0;
  return a;
}

search::Space space_of(const StoredStudy& study) {
  std::vector<search::Parameter> parameters;
  for (const StoredTrial& one : study.trials)
    for (const StoredParameter& given : one.parameters) {
      const auto found = std::find_if(parameters.begin(), parameters.end(),
                                      [&](const auto& known) { return known.name == given.name; });
      if (found == parameters.end())
        parameters.push_back({given.name, given.distribution});
      else
        found->distribution = holding(found->distribution, given.distribution);
    }
  search::Space space;
  for (search::Parameter& parameter : parameters) space.add(std::move(parameter));
  return space;
}

// The trials of the study in its own space, complete ones with as many values as it has objectives.
Trials trials_of(const StoredStudy& study) {
  Trials trials(space_of(study), study.header.maximise, study.header.name);
  for (const StoredTrial& one : study.trials) {
    Trial trial = one.trial;
    trial.point.assign(trials.space().dimensions(), std::nan(""));
    for (const StoredParameter& given : one.parameters) {
      const auto index = static_cast<size_t>(trials.space().find(given.name));
      const auto value = trials.space().parameters()[index].distribution.internal(
          given.distribution.external(given.value));
      if (value) trial.point[index] = *value;
    }
    const bool whole = trial.values.size() == study.header.maximise.size();
    if (trial.state == search::TrialState::complete && !whole)
      trial.state = search::TrialState::fail;
    trials.add(std::move(trial));
  }
  return trials;
}

Value objective_rows(const StoredStudy& study, const std::vector<std::string>& names,
                     const Trials& trials) {
  List rows;
  for (size_t k = 0; k < names.size(); ++k) {
    const auto* const record = Registry<search::FigureRecord>::instance().find(names[k]);
    // Scaled figures keep their names: a share is one only within its limits.
    const bool share = std::all_of(trials.begin(), trials.end(), [&](const Trial& trial) {
      return trial.state != search::TrialState::complete ||
             (trial.values[k] >= 0 && trial.values[k] <= 1);
    });
    rows.emplace_back(Dict{{"name", names[k]},
                           {"maximise", Value(study.header.maximise[k])},
                           {"percent", record && record->percent && share},
                           {"unit", record ? record->unit : ""}});
  }
  return rows;
}

}  // namespace

Value study_record(const std::string& address, const std::string& wanted) {
  const std::unique_ptr<search::Storage> storage = search::open_existing_storage(address);
  const std::string name = chosen_study(*storage, address, wanted);
  const StoredStudy study = storage->stored_study(name);
  std::vector<std::string> names = study.header.metric_names;
  if (names.size() != study.header.maximise.size()) {
    names.clear();
    for (size_t k = 0; k < study.header.maximise.size(); ++k)
      names.push_back(study.header.maximise.size() == 1 ? "value" : fmt::format("value {}", k));
  }
  const Trials trials = trials_of(study);
  std::set<int64_t> front;
  for (const int64_t number : search::best_trials(trials)) front.insert(number);
  const int64_t complete = std::count_if(trials.begin(), trials.end(), [](const Trial& trial) {
    return trial.state == search::TrialState::complete;
  });
  if (complete == 0)
    throw Error(masked_address(address),
                fmt::format("study '{}' has no complete trial yet", printable(name)));
  Value record = Dict{{"study", name},
                      {"storage", masked_address(address)},
                      {"complete", complete},
                      {"objectives", objective_rows(study, names, trials)},
                      {"importances", importance_rows(trials, names, 0, {})}};
  record_trials(record, trials, front);
  return record;
}

}  // namespace mase
