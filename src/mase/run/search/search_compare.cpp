// SPDX-License-Identifier: Apache-2.0
// ch search compare: several samplers, many seeds, one space. A configuration is measured once,
// whoever proposes it: what is compared is what samplers propose, and their measurements are equal.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>

#include "mase/base/table.h"
#include "mase/base/text.h"
#include "mase/run/search/search_experiment.h"
#include "mase/search/study/pareto.h"

namespace mase {
namespace {

using search::Losses;
using search::Measurement;
using search::Point;
using search::SamplerRecord;

// One search: the losses of its trials in their order; infinite where nothing was measured.
struct ComparedRun {
  std::vector<Losses> trials;
  double seconds = 0;  // spent by the sampler
};

double quantile(std::vector<double> values, double share) {
  std::sort(values.begin(), values.end());
  const double place = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, values.size() - 1);
  return values[below] + (place - std::floor(place)) * (values[above] - values[below]);
}

// What a search has reached after each trial: its best value, or the volume its front covers.
std::vector<double> reached(const ComparedRun& run, bool maximise, const Losses& reference) {
  std::vector<double> curve;
  std::vector<Losses> front;
  double best = std::numeric_limits<double>::infinity(), volume = 0;
  for (const Losses& losses : run.trials) {
    if (reference.empty()) {
      best = std::min(best, losses[0]);
      curve.push_back(maximise ? -best : best);
      continue;
    }
    const bool dominated = std::any_of(front.begin(), front.end(), [&](const Losses& other) {
      return other == losses || search::dominates(other, losses);
    });
    if (!dominated) {
      std::erase_if(front, [&](const Losses& other) { return search::dominates(losses, other); });
      front.push_back(losses);
      volume = search::hypervolume(front, reference);
    }
    curve.push_back(volume);
  }
  return curve;
}

std::string brief_figure(double value) {
  return std::isfinite(value) ? fmt::format("{:.6g}", value) : "-";
}

std::vector<std::string> comparison_cells(const ComparedSampler& one) {
  const auto after = [&](double share) {
    if (one.median.empty()) return std::string("-");
    const auto trials = static_cast<double>(one.median.size());
    const auto at = static_cast<size_t>(std::max(1.0, std::ceil(share * trials))) - 1;
    return brief_figure(one.median[at]);
  };
  return {after(0.25),
          after(0.5),
          after(1),
          fmt::format("{}/{}", one.found, one.seeds),
          one.trials_to_best ? fmt::format("{:g}", *one.trials_to_best) : "-",
          fmt::format("{:.3f}", one.suggestion_ms)};
}

std::vector<std::string> comparison_columns() {
  return {"after 25 %",     "after 50 %",   "after all",
          "found the best", "trials to it", "ms per suggestion"};
}

}  // namespace

Comparison SearchExperiment::compare(const std::vector<const SamplerRecord*>& samplers,
                                     int64_t seeds, const search::StudyObserver& observer) const {
  const bool several = objectives_.size() > 1;
  const double size = space().size();
  int64_t trials = spec_.study.trials > 0 ? spec_.study.trials : 100;
  if (static_cast<double>(trials) > size) trials = static_cast<int64_t>(size);
  std::mutex mutex;
  std::map<Point, Measurement> known;
  std::map<std::string, std::vector<ComparedRun>> runs;
  Comparison result;
  std::vector<search::Objective> measuring;
  for (int job = 0; job < spec_.study.jobs; ++job) {
    const search::Objective measure = objective(observer);
    measuring.emplace_back([&, measure](const Point& point, const search::Report&) {
      Point key = point;
      for (double& value : key)
        if (std::isnan(value)) value = std::numeric_limits<double>::infinity();
      {
        std::lock_guard lock(mutex);
        const auto found = known.find(key);
        if (found != known.end()) return found->second;
      }
      Measurement fresh = measure.measure(point, [](int64_t, double) { return true; });
      if (fresh.interrupted) return fresh;
      std::lock_guard lock(mutex);
      return known.emplace(std::move(key), std::move(fresh)).first->second;
    });
  }
  std::vector<Losses> all;
  for (const SamplerRecord* sampler : samplers) {
    const search::SamplerSetup setup{&space(), objectives_.size(), trials};
    if (const auto reason = sampler->refuses ? sampler->refuses(setup) : std::nullopt) {
      result.left_out.push_back(fmt::format("{} cannot search here: {}", sampler->name, *reason));
      continue;
    }
    for (int64_t seed = 0; seed < seeds; ++seed) {
      if (observer.stop_requested && observer.stop_requested()) return result;
      search::StudyOptions options = spec_.study;
      options.seed += static_cast<uint64_t>(seed);
      options.trials = trials;
      options.independent = sampler->independent;
      const Value own = sampler == spec_.sampler
                            ? spec_.sampler_options
                            : validate(Value(Dict{}), sampler->schema, sampler->name);
      search::Study study(search::Trials(space(), maximise_, sampler->name),
                          sampler->make(own, setup), nullptr, nullptr, options);
      study.run(measuring, observer);
      ComparedRun run;
      run.seconds = study.sampler_seconds();
      for (const search::Trial& trial : study.trials()) {
        Losses losses(objectives_.size(), std::numeric_limits<double>::infinity());
        if (trial.state == search::TrialState::complete && trial.feasible())
          for (size_t k = 0; k < losses.size(); ++k) losses[k] = study.trials().loss(trial, k);
        if (std::isfinite(losses[0])) all.push_back(losses);
        run.trials.push_back(std::move(losses));
      }
      runs[sampler->name].push_back(std::move(run));
    }
  }
  if (all.empty()) throw Error("ch search compare", "no configuration could be measured");
  const Losses reference = several ? search::reference_point(all) : Losses{};
  const bool maximise = several || maximise_[0];
  result.measure = several ? "hypervolume" : "best " + objectives_[0];
  double best = 0;
  if (several) {
    std::vector<Losses> front;
    for (const size_t i : search::pareto_front(all)) front.push_back(all[i]);
    best = search::hypervolume(front, reference);
  } else {
    double least = std::numeric_limits<double>::infinity();
    for (const Losses& losses : all) least = std::min(least, losses[0]);
    best = maximise ? -least : least;
  }
  result.best = best;
  result.configurations = static_cast<int64_t>(known.size());
  for (auto& [name, of_sampler] : runs) {
    ComparedSampler compared;
    compared.name = name;
    std::vector<std::vector<double>> curves;
    std::vector<double> to_best, suggestion;
    for (const ComparedRun& run : of_sampler) {
      curves.push_back(reached(run, maximise, reference));
      const auto hit = std::find_if(curves.back().begin(), curves.back().end(), [&](double value) {
        return maximise ? value >= best : value <= best;
      });
      if (hit != curves.back().end())
        to_best.push_back(static_cast<double>(hit - curves.back().begin()) + 1);
      suggestion.push_back(1e3 * run.seconds / static_cast<double>(run.trials.size()));
    }
    size_t length = curves[0].size();
    for (const auto& curve : curves) length = std::min(length, curve.size());
    for (size_t i = 0; i < length; ++i) {
      std::vector<double> values;
      for (const auto& curve : curves) values.push_back(curve[i]);
      compared.median.push_back(quantile(values, 0.5));
      compared.low.push_back(quantile(values, 0.25));
      compared.high.push_back(quantile(values, 0.75));
    }
    compared.found = static_cast<int64_t>(to_best.size());
    compared.seeds = static_cast<int64_t>(curves.size());
    // Half of the seeds or more found it: then there is a median, those that did not being late.
    to_best.resize(curves.size(), std::numeric_limits<double>::infinity());
    const double typical = quantile(to_best, 0.5);
    if (std::isfinite(typical)) compared.trials_to_best = typical;
    compared.suggestion_ms = quantile(suggestion, 0.5);
    result.samplers.push_back(std::move(compared));
  }
  return result;
}

Value comparison_record(const Comparison& comparison) {
  List samplers;
  for (const ComparedSampler& one : comparison.samplers) {
    List at, median, low, high;
    const size_t step = std::max<size_t>(1, one.median.size() / 500);
    for (size_t i = 0; i < one.median.size(); ++i) {
      if (i % step != 0 && i + 1 != one.median.size()) continue;
      at.emplace_back(i + 1);
      median.emplace_back(one.median[i]);
      low.emplace_back(one.low[i]);
      high.emplace_back(one.high[i]);
    }
    samplers.emplace_back(Dict{{"name", one.name},
                               {"trial", std::move(at)},
                               {"median", std::move(median)},
                               {"low", std::move(low)},
                               {"high", std::move(high)},
                               {"cells", Value::of(comparison_cells(one))}});
  }
  return Dict{{"measure", comparison.measure},
              {"best", comparison.best},
              {"columns", Value::of(comparison_columns())},
              {"samplers", std::move(samplers)}};
}

std::string comparison_table(const Comparison& comparison) {
  std::vector<std::string> header = {"sampler"};
  for (const std::string& name : comparison_columns()) header.push_back(name);
  Table table(header);
  for (const ComparedSampler& one : comparison.samplers) {
    std::vector<std::string> cells = {one.name};
    for (std::string& cell : comparison_cells(one)) cells.push_back(std::move(cell));
    table.add(std::move(cells));
  }
  return table.str(TableStyle::orgtbl);
}

}  // namespace mase
