// SPDX-License-Identifier: Apache-2.0
// The trials of a search: measured, and what is best of them.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>

#include "mase/run/search/search_experiment.h"
#include "mase/run/search/search_identity.h"
#include "mase/run/search/search_kept.h"
#include "mase/search/pruners/pruner.h"

namespace mase {
namespace {

using search::Evaluator;
using search::Losses;
using search::Measurement;
using search::Point;
using search::Trial;

}  // namespace

Measurement SearchExperiment::measured(const search::Figures& figures) const {
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
    // After an epoch not every figure is known yet.
    const double value = figure ? figure->as_double() : std::numeric_limits<double>::quiet_NaN();
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
                            {"scaled_metrics", std::move(scaled)}};
  return result;
}

Measurement SearchExperiment::measurement_of(Evaluator::Result result) const {
  if (result.end == Evaluator::End::measured) return measured(result.figures);
  Measurement none;
  none.pruned = result.end == Evaluator::End::enough;
  none.interrupted = result.end == Evaluator::End::cancelled;
  none.failure = result.failure;
  return none;
}

// The other objectives do not depend on rows: they are measured first.
Measurement SearchExperiment::raced(const Point& point, Evaluator::Session& session) const {
  search::Figures figures;
  try {
    figures = {{{"accuracy", 0.0}, {"loss", 0.0}}, session.hardware(point)};
  } catch (const Error& error) {  // of a design that this configuration does not give
    Measurement none;
    none.failure = error.what();
    return none;
  }
  const Measurement known = measured(figures);
  Losses others;
  for (size_t k = 0; k < objectives_.size(); ++k)
    if (objectives_[k] != "accuracy")
      others.push_back(maximise_[k] ? -known.values[k] : known.values[k]);
  const Dataset& dataset = *experiment_.dataset();
  const search::RacedScore raced = search::race_network(
      evaluator_->untrained(point), dataset, split_called(dataset, spec_.split), rows(),
      std::max<int64_t>(experiment_.spec().batch_size, 256), others, *race_);
  if (!raced.given_up) {
    figures.software = all_figures_.software(raced.score);
    return measured(figures);
  }
  Measurement lost;
  lost.pruned = true;
  lost.user_attributes = {{"hardware_metrics", known.user_attributes.at("hardware_metrics")},
                          {"racing", Dict{{"rows", raced.score.rows},
                                          {"accuracy", raced.score.accuracy()},
                                          {"rival_accuracy", raced.given_up->rival_accuracy},
                                          {"probability", raced.given_up->probability}}}};
  return lost;
}

search::Objective SearchExperiment::objective(const search::StudyObserver& observer) const {
  const std::shared_ptr<Evaluator::Session> session = evaluator_->session();
  if (race_)
    return search::Objective([this, session](const Point& point, const search::Report&) {
      return raced(point, *session);
    });
  search::Objective result(
      [this, session, &observer](const Point& point, const search::Report& report) {
        Evaluator::Calls calls;
        calls.cancelled = observer.stop_requested;
        if (objectives_.size() == 1)
          calls.on_epoch = [&](int64_t epoch, const search::Figures& figures) {
            return report(epoch, measured(figures).values[0]);
          };
        Evaluator::Result one = std::move(session->measure(std::span(&point, 1), calls)[0]);
        Graph network = std::move(one.network);
        const bool trained = spec_.trained && one.end == Evaluator::End::measured;
        Measurement measurement = measurement_of(std::move(one));
        const bool feasible =
            std::all_of(measurement.constraints.begin(), measurement.constraints.end(),
                        [](double constraint) { return constraint <= 0; });
        if (trained && feasible) {
          Losses losses;
          for (size_t k = 0; k < objectives_.size(); ++k)
            losses.push_back(maximise_[k] ? -measurement.values[k] : measurement.values[k]);
          kept_->take(point, std::move(losses), std::move(network));
        }
        return measurement;
      });
  result.at_once = session->at_once();
  if (result.at_once > 1)
    result.measure_all = [this, session](std::span<const Point> points) {
      std::vector<Measurement> all;
      for (Evaluator::Result& one : session->measure(points, {}))
        all.push_back(measurement_of(std::move(one)));
      return all;
    };
  return result;
}

search::SamplerSetup SearchExperiment::sampler_setup() const {
  search::SamplerSetup setup{&space(), objectives_.size(), spec_.study.trials};
  if (evaluator_->shares_work() && !race_) setup.together = evaluator_->session()->at_once();
  return setup;
}

search::StudyEnd SearchExperiment::run(search::Storage* storage, const std::string& study,
                                       const search::StudyObserver& observer) {
  search::Trials history(space(), maximise_, study);
  if (storage) {
    storage->open_study({study, maximise_, objectives_});
    check_identity(*storage, study);
  }
  std::unique_ptr<search::Pruner> pruner;
  if (!spec_.pruner.is_null())
    pruner = search::make_pruner(spec_.pruner, "search.strategy.setup.pruner");
  search::StudyOptions options = spec_.study;
  options.independent = spec_.sampler->independent;
  search::Study loop(std::move(history),
                     spec_.sampler->make(spec_.sampler_options, sampler_setup()), std::move(pruner),
                     storage, options);
  std::vector<search::Objective> objectives;
  for (int job = 0; job < spec_.study.jobs; ++job) objectives.push_back(objective(observer));
  const search::StudyEnd end = loop.run(objectives, observer);
  trials_ = std::make_unique<search::Trials>(loop.take_trials());
  find_front();
  complete_best();
  return end;
}

// Trials with the same figures may be the same network: formats that round its weights to the same
// numbers. The first of them in the order of the space stands for all, whoever was tried first.
void SearchExperiment::find_front() {
  front_.clear();
  std::map<std::vector<double>, std::vector<int64_t>> equal;
  for (const int64_t place : search::best_trials(*trials_)) {
    const Trial& trial = (*trials_)[static_cast<size_t>(place)];
    if (trial.in_space) equal[trial.values].push_back(place);
  }
  const auto point_of = [&](int64_t place) { return (*trials_)[static_cast<size_t>(place)].point; };
  for (auto& [values, places] : equal) {
    std::sort(places.begin(), places.end(), [&](int64_t a, int64_t b) {
      const Point first = point_of(a), second = point_of(b);
      for (size_t p = 0; p < first.size(); ++p) {
        const double x = std::isnan(first[p]) ? -1e300 : first[p];
        const double y = std::isnan(second[p]) ? -1e300 : second[p];
        if (x != y) return x < y;
      }
      return a < b;
    });
    std::map<std::string, size_t> effects;  // place in front_
    for (const int64_t place : places) {
      const Trial& trial = (*trials_)[static_cast<size_t>(place)];
      if (places.size() > 1 && !spec_.trained) {
        std::string effect = effect_digest(evaluator_->untrained(trial.point));
        if (const Value* hardware = trial.user_attributes.find("hardware_metrics"))
          effect += to_json(*hardware);
        const auto [known, fresh] = effects.emplace(std::move(effect), front_.size());
        if (!fresh) {
          front_[known->second].same.push_back(trial.shown());
          continue;
        }
      }
      front_.push_back({place, trial.shown(), {}});
    }
  }
  // The cheapest first: by objectives that need no rows, then by the others.
  std::vector<size_t> order;
  for (const bool software : {false, true})
    for (size_t k = 0; k < objectives_.size(); ++k) {
      const auto* record = Registry<search::FigureRecord>::instance().find(objectives_[k]);
      if ((record && record->is_software()) == software) order.push_back(k);
    }
  std::stable_sort(front_.begin(), front_.end(), [&](const FrontMember& a, const FrontMember& b) {
    const Trial& first = (*trials_)[static_cast<size_t>(a.place)];
    const Trial& second = (*trials_)[static_cast<size_t>(b.place)];
    for (const size_t k : order) {
      const double x = trials_->loss(first, k), y = trials_->loss(second, k);
      if (x != y) return x < y;
    }
    return a.place < b.place;
  });
}

std::optional<SearchExperiment::Pace> SearchExperiment::pace() const {
  constexpr double long_enough = 0.05;  // seconds that a measurement may take
  constexpr double most_counted = 1e9;
  const double size = space().size();
  if (!evaluator_->shares_work() || race_ || !(size <= most_counted)) return {};
  const std::unique_ptr<Evaluator::Session> session = evaluator_->session();
  const auto seconds = [&](std::span<const Point> points) {
    const auto start = std::chrono::steady_clock::now();
    session->measure(points, {});
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  // Points far apart have no layer in common; the first one also makes what all of them need.
  Pace pace;
  Random random(0, "search pace");
  for (int i = 0; i < 3; ++i) {
    const Point point = random_point(space(), random);
    const double one = seconds(std::span(&point, 1));
    if (one > long_enough) return {};
    pace.one = i < 2 ? one : std::min(pace.one, one);
  }
  const auto together = static_cast<double>(session->at_once());
  if (together < 2 || 2 * together > size) return {};
  for (const double first : {0.0, together}) {
    std::vector<Point> group;
    for (double i = 0; i < together; ++i) group.push_back(space().nth(first + i));
    pace.all = seconds(group) * size / together;
  }
  return pace;
}

// What was left out of many measurements is measured for the best.
void SearchExperiment::complete_best() {
  const Dataset& dataset = *experiment_.dataset();
  if (figures_.wanted().size() == all_figures_.wanted().size()) return;
  for (const FrontMember& member : front_) {
    Trial& trial = trials_->at(static_cast<size_t>(member.place));
    const Value* software = trial.user_attributes.find("software_metrics");
    if (software && software->is_dict() && software->as_dict().contains("loss")) continue;
    const Score score = search::score_network(
        evaluator_->untrained(trial.point), dataset, split_called(dataset, spec_.split), rows(),
        std::max<int64_t>(experiment_.spec().batch_size, 256));
    trial.user_attributes.set("software_metrics", all_figures_.software(score));
  }
}

std::optional<Graph> SearchExperiment::network(int64_t place, const Stop& stop) const {
  const Point& point = (*trials_)[static_cast<size_t>(place)].point;
  if (!spec_.trained) return evaluator_->untrained(point);
  if (auto kept = kept_->find(point)) return kept;
  if (stop && stop()) return {};
  Evaluator::Calls calls;
  calls.cancelled = stop;
  Evaluator::Result again =
      std::move(evaluator_->session()->measure(std::span(&point, 1), calls)[0]);
  if (again.end != Evaluator::End::measured) return {};
  kept_->keep(point, again.network);
  return std::move(again.network);
}

}  // namespace mase
