// SPDX-License-Identifier: Apache-2.0
#include "mase/run/search_experiment.h"

#include <algorithm>
#include <cmath>

#include "mase/base/table.h"
#include "mase/base/text.h"

namespace mase {
namespace {

using search::Measurement;
using search::Point;
using search::Trial;

const Split& rows_called(const Dataset& dataset, const std::string& name) {
  if (name == "test") return dataset.test;
  return name == "train" ? dataset.train : dataset.validation;
}

Value rounded(const Value& figures) {
  Dict shown;
  if (!figures.is_dict()) return shown;
  for (const auto& [name, value] : figures.as_dict())
    shown.set(name, value.is_double() ? Value(std::round(value.as_double() * 1000) / 1000) : value);
  return shown;
}

// As pandas writes times: milliseconds.
Value milliseconds(int64_t microseconds) {
  return microseconds ? Value(microseconds / 1000) : Value();
}

}  // namespace

SearchExperiment::SearchExperiment(const Experiment& experiment, SearchSpec spec)
    : experiment_(experiment), spec_(std::move(spec)) {
  Problems problems;
  if (!experiment_.dataset())
    throw Error("ch search", "there are no data to measure on", "name a data set");
  const Dataset& dataset = *experiment_.dataset();
  space_ = std::make_unique<search::QuantizeSpace>(experiment_.graph(), spec_.seed, spec_.by,
                                                   spec_.seed_path, problems);
  std::vector<std::string> known = search::software_figures(dataset.classification);
  for (const std::string& name : search::hardware_figures()) known.push_back(name);
  for (const SearchMetric& metric : spec_.metrics) {
    if (std::find(known.begin(), known.end(), metric.name) == known.end())
      problems.add(Error(metric.position, "search.strategy.metrics",
                         fmt::format("'{}' is not measured", printable(metric.name)),
                         suggestion(metric.name, known)));
    if (metric.maximise && !spec_.sum_scaled) {
      objectives_.push_back(metric.name);
      maximise_.push_back(*metric.maximise);
    }
  }
  if (spec_.sum_scaled) {
    objectives_ = {"sum_scaled_metrics"};
    maximise_ = {spec_.sum_maximise};
  }
  problems.throw_if_any();
  if (objectives_.empty())
    throw Error("search.strategy.metrics", "every metric is only limited",
                "give one of them a direction");
  if (space_->space().empty())
    throw Error(spec_.seed_path, "there is one configuration only", "give lists of several values");
  const Split& split = rows_called(dataset, spec_.split);
  if (split.rows() == 0)
    throw Error(dataset.name, fmt::format("has no {} rows to search on", spec_.split),
                "choose another data_loader or --val-split");
  if (spec_.study.trials < 0 && space_->space().size() > 1e6)
    throw Error("search.strategy.setup",
                fmt::format("the space has {} configurations: 'n_trials' is missing",
                            human_count(space_->space().size())),
                "say how many to try: --n-trials 1000");
  const search::SamplerSetup setup{&space_->space(), objectives_.size(), spec_.study.trials};
  if (spec_.sampler->refuses)
    if (const auto reason = spec_.sampler->refuses(setup))
      throw Error("search.strategy.setup.sampler",
                  fmt::format("{} cannot search here: {}", spec_.sampler->name, *reason),
                  "choose another sampler, such as tpe");
  evaluator_ = std::make_unique<search::PtqEvaluator>(
      experiment_.graph(), *space_, search::EvaluationRows{&dataset, &split, spec_.rows},
      std::max<int64_t>(experiment_.spec().batch_size, 256), spec_.compare_to);
}

int64_t SearchExperiment::rows() const {
  return std::min(spec_.rows, rows_called(*experiment_.dataset(), spec_.split).rows());
}

Measurement SearchExperiment::measure(const Point& point, search::PrefixRunner& runner) const {
  const search::Figures figures = evaluator_->measure(point, runner);
  Measurement result;
  Dict scaled, hardware;
  const auto keep = [&](const std::string& name) {
    if (const Value* figure = figures.hardware.find(name)) hardware.set(name, *figure);
  };
  for (const std::string& name : spec_.hardware) keep(name);
  double sum = 0;
  for (const SearchMetric& metric : spec_.metrics) {
    keep(metric.name);
    const Value* figure = figures.software.find(metric.name);
    if (!figure) figure = figures.hardware.find(metric.name);
    const double value = figure->as_double();
    if (metric.maximise) {
      scaled.set(metric.name, metric.scale * value);
      sum += metric.scale * value;
      if (!spec_.sum_scaled) result.values.push_back(metric.scale * value);
    }
    if (metric.upper_bound) result.constraints.push_back(value - *metric.upper_bound);
    if (metric.lower_bound) result.constraints.push_back(*metric.lower_bound - value);
  }
  if (spec_.sum_scaled) result.values = {sum};
  result.user_attributes = {{"software_metrics", figures.software},
                            {"hardware_metrics", std::move(hardware)},
                            {"scaled_metrics", std::move(scaled)},
                            {"sampled_config", space_->sampled_config(point)}};
  return result;
}

search::StudyEnd SearchExperiment::run(search::Storage* storage, const std::string& study,
                                       const search::StudyObserver& observer) {
  search::Trials history(space_->space(), maximise_, study);
  if (storage) {
    storage->open_study({study, maximise_, objectives_});
    for (Trial& trial : storage->load(space_->space())) history.add(std::move(trial));
  }
  const search::SamplerSetup setup{&space_->space(), objectives_.size(), spec_.study.trials};
  search::Study loop(std::move(history), spec_.sampler->make(spec_.sampler_options, setup), nullptr,
                     storage, spec_.study);
  std::vector<search::Objective> objectives;
  for (int job = 0; job < spec_.study.jobs; ++job) {
    const auto runner = std::make_shared<search::PrefixRunner>(evaluator_->runner());
    objectives.push_back([this, runner](const Point& point, const search::Report&) {
      return measure(point, *runner);
    });
  }
  const search::StudyEnd end = loop.run(objectives, observer);
  trials_ = std::make_unique<search::Trials>(loop.trials());
  return end;
}

Value SearchExperiment::best_record() const {
  Dict rows;
  size_t index = 0;
  for (const int64_t number : search::best_trials(*trials_)) {
    const Trial& trial = (*trials_)[static_cast<size_t>(number)];
    List values;
    for (const double value : trial.values) values.emplace_back(value);
    const auto attribute = [&](const char* name) {
      const Value* found = trial.user_attributes.find(name);
      return found ? *found : Value();
    };
    rows.set(std::to_string(index++),
             Dict{{"number", number},
                  {"value", values.size() == 1 ? values[0] : Value(values)},
                  {"software_metrics", attribute("software_metrics")},
                  {"hardware_metrics", attribute("hardware_metrics")},
                  {"scaled_metrics", attribute("scaled_metrics")},
                  {"sampled_config", attribute("sampled_config")}});
  }
  return rows;
}

// Optuna's data frame of trials, one object per row.
Value SearchExperiment::log_record() const {
  Dict rows;
  for (const Trial& trial : *trials_) {
    Dict row{{"number", trial.number}};
    for (size_t k = 0; k < objectives_.size(); ++k)
      row.set(objectives_.size() == 1 ? "value" : fmt::format("values_{}", k),
              k < trial.values.size() ? Value(trial.values[k]) : Value());
    row.set("datetime_start", milliseconds(trial.started));
    row.set("datetime_complete", milliseconds(trial.ended));
    row.set("duration", milliseconds(trial.ended ? trial.ended - trial.started : 0));
    if (trial.in_space) {
      const Value parameters = search::point_to_value(trials_->space(), trial.point);
      for (const auto& [name, value] : parameters.as_dict()) row.set("params_" + name, value);
    }
    for (const auto& [name, value] : trial.user_attributes) row.set("user_attrs_" + name, value);
    row.set("state", search::state_name(trial.state));
    rows.add(std::to_string(trial.number), std::move(row));
  }
  return rows;
}

std::string SearchExperiment::best_table() const {
  Table table({"", "number", "software_metrics", "hardware_metrics", "scaled_metrics"});
  size_t index = 0;
  for (const int64_t number : search::best_trials(*trials_)) {
    const Trial& trial = (*trials_)[static_cast<size_t>(number)];
    const auto shown = [&](const char* name) {
      const Value* found = trial.user_attributes.find(name);
      return found ? python_repr(rounded(*found)) : std::string();
    };
    table.add({std::to_string(index++), std::to_string(number), shown("software_metrics"),
               shown("hardware_metrics"), shown("scaled_metrics")});
  }
  return table.str(TableStyle::orgtbl);
}

Value SearchExperiment::configuration(int64_t number) const {
  const Trial& trial = (*trials_)[static_cast<size_t>(number)];
  return Dict{{"passes", Dict{{"quantize", space_->pass_arguments(trial.point)}}}};
}

Graph SearchExperiment::network(int64_t number) const {
  return evaluator_->quantised((*trials_)[static_cast<size_t>(number)].point);
}

std::vector<TestScore> SearchExperiment::test_best() const {
  const Dataset& dataset = *experiment_.dataset();
  std::vector<TestScore> scores;
  if (spec_.split == "test" || !dataset.classification || dataset.test.rows() == 0) return scores;
  for (const int64_t number : search::best_trials(*trials_)) {
    const Score score = evaluator_->score(network(number), dataset.test, dataset.test.rows());
    const double n = static_cast<double>(score.rows), p = score.accuracy();
    constexpr double z = 1.959963984540054;
    const double centre = (p + z * z / (2 * n)) / (1 + z * z / n);
    const double half = z / (1 + z * z / n) * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
    scores.push_back({number, p, centre - half, centre + half, score.loss(), score.rows});
  }
  return scores;
}

}  // namespace mase
