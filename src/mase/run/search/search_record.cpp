// SPDX-License-Identifier: Apache-2.0
// search.json: what the page of a search is drawn from. Small whatever the number of trials: beyond
// some thousand only the best ones and an even choice of the others are in it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "mase/run/search/search_experiment.h"
#include "mase/run/search/study_record.h"
#include "mase/search/importances/importance.h"

namespace mase {
namespace {

using search::Trial;
using search::Trials;
using search::TrialState;

constexpr size_t most_for_importance = 2000;  // a forest over more trees takes seconds
constexpr size_t most_recorded_trials = 4000;

// An even choice of the complete trials.
Trials some_of(const Trials& trials, size_t most) {
  Trials chosen(trials.space(), trials.maximise(), trials.study_name());
  const size_t step = std::max<size_t>(1, trials.size() / most);
  for (size_t i = 0; i < trials.size(); i += step) chosen.add(trials[i]);
  return chosen;
}

Value test_rows(const std::vector<TestScore>& scores) {
  List rows;
  for (const TestScore& score : scores)
    rows.emplace_back(Dict{{"number", score.number},
                           {"searched", number_or_none(score.searched)},
                           {"accuracy", score.accuracy},
                           {"low", score.low},
                           {"high", score.high},
                           {"loss", score.loss},
                           {"rows", score.rows},
                           {"difference", score.difference},
                           {"difference_low", score.difference_low},
                           {"difference_high", score.difference_high}});
  return rows;
}

// Objectives are scaled metrics: a figure that is not the metric itself says so.
std::string shown_objective(const SearchSpec& spec, const std::string& name) {
  for (const SearchMetric& metric : spec.metrics)
    if (metric.name == name && metric.scale != 1)
      return fmt::format("{} x {:g}", name, metric.scale);
  return name;
}

// Where the best value of each objective changed: a line of few points.
Value best_so_far(const Trials& trials) {
  List curves;
  for (size_t k = 0; k < trials.objectives(); ++k) {
    List at, values;
    double best = std::numeric_limits<double>::infinity();
    int64_t last = -1;
    for (const Trial& trial : trials) {
      if (trial.state != TrialState::complete || !trial.feasible()) continue;
      last = trial.number;
      if (!(trials.loss(trial, k) < best)) continue;
      if (!values.empty()) {  // a step, not a slope
        at.emplace_back(trial.number - 1);
        values.push_back(values.back());
      }
      best = trials.loss(trial, k);
      at.emplace_back(trial.number);
      values.push_back(number_or_none(trial.values[k]));
    }
    if (!values.empty()) {
      at.emplace_back(last);
      values.push_back(values.back());
    }
    curves.emplace_back(Dict{{"trial", std::move(at)}, {"value", std::move(values)}});
  }
  return curves;
}

}  // namespace

Value number_or_none(double value) { return std::isfinite(value) ? Value(value) : Value(); }

void record_trials(Value& record, const Trials& trials, const std::set<int64_t>& front) {
  List parameters, best, rows;
  for (const search::Parameter& parameter : trials.space().parameters())
    parameters.emplace_back(parameter.name);
  for (const int64_t place : front) best.emplace_back(trials[static_cast<size_t>(place)].shown());
  const size_t step = std::max<size_t>(1, trials.size() / most_recorded_trials);
  for (const Trial& trial : trials) {
    if (trial.state != TrialState::complete || !trial.in_space) continue;
    if (static_cast<size_t>(trial.number) % step != 0 && !front.count(trial.number)) continue;
    List values, settings;
    for (const double value : trial.values) values.push_back(number_or_none(value));
    for (size_t p = 0; p < trial.point.size(); ++p)
      settings.push_back(
          std::isnan(trial.point[p])
              ? Value()
              : trials.space().parameters()[p].distribution.external(trial.point[p]));
    rows.emplace_back(Dict{{"number", trial.shown()},
                           {"values", std::move(values)},
                           {"settings", std::move(settings)}});
  }
  record["total"] = trials.size();
  record["parameters"] = std::move(parameters);
  record["best"] = std::move(best);
  record["best_so_far"] = best_so_far(trials);
  record["trials"] = std::move(rows);
}

Value importance_rows(const Trials& trials, const std::vector<std::string>& objectives,
                      uint64_t seed, const std::function<bool()>& stop) {
  List all;
  if (trials.space().dimensions() < 2) return all;
  const Trials chosen = some_of(trials, most_for_importance);
  for (const char* evaluator : {"ped-anova", "fanova"})
    for (size_t k = 0; k < objectives.size() && !(stop && stop()); ++k) {
      List shares;
      for (const auto& [name, share] : search::importances(evaluator, chosen, k, seed))
        shares.emplace_back(Dict{{"parameter", name}, {"share", share}});
      if (!shares.empty())
        all.emplace_back(Dict{
            {"evaluator", evaluator}, {"objective", objectives[k]}, {"shares", std::move(shares)}});
    }
  return all;
}

// Of a search that runs the trials that none beats; of one that is over its front, each network
// once.
Value search_record(const SearchExperiment& search, const Trials& trials,
                    const std::string& sampler) {
  List objectives;
  for (size_t k = 0; k < search.objectives().size(); ++k) {
    const auto* record = Registry<search::FigureRecord>::instance().find(search.objectives()[k]);
    const std::string shown = shown_objective(search.spec(), search.objectives()[k]);
    objectives.emplace_back(Dict{{"name", shown},
                                 {"maximise", Value(search.maximise()[k])},
                                 {"percent", record && record->percent && shown == record->name},
                                 {"unit", record ? record->unit : ""}});
  }
  std::set<int64_t> front;
  if (search.is_over()) {
    for (const FrontMember& member : search.front()) front.insert(member.place);
  } else {
    for (const int64_t place : search::best_trials(trials)) front.insert(place);
  }
  const double size = trials.space().size();
  Value record = Dict{{"study", trials.study_name()},
                      {"sampler", sampler},
                      {"seed", static_cast<int64_t>(search.spec().study.seed)},
                      {"split", search.spec().split},
                      {"rows", search.rows()},
                      {"split_rows", search.split_rows()},
                      {"configurations", std::isinf(size) ? Value("any number of")
                                                          : Value(static_cast<int64_t>(size))},
                      {"objectives", std::move(objectives)}};
  record_trials(record, trials, front);
  return record;
}

Value search_record(const SearchExperiment& search, const std::vector<TestScore>& scores,
                    const SearchExperiment::Stop& stop) {
  Value record = search_record(search, search.trials(), search.spec().sampler->name);
  record["test"] = test_rows(scores);
  record["importances"] =
      importance_rows(search.trials(), search.objectives(), search.spec().study.seed, stop);
  record["sensitivity"] = stop && stop() ? Value() : search.sensitivity(stop);
  return record;
}

}  // namespace mase
