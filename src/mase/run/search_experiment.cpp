// SPDX-License-Identifier: Apache-2.0
#include "mase/run/search_experiment.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <mutex>
#include <set>

#include "mase/base/text.h"
#include "mase/run/search_training.h"
#include "mase/search/pruner.h"

namespace mase {
namespace {

using search::Measurement;
using search::Point;
using search::Trial;

const Split& rows_called(const Dataset& dataset, const std::string& name) {
  if (name == "test") return dataset.test;
  return name == "train" ? dataset.train : dataset.validation;
}

// A flag names every kind of layer with products; those that this network has.
Value of_this_network(const Value& seed, const Graph& graph) {
  std::set<std::string> ops = {"default"};
  for (const auto& [path, module] : graph.modules()) ops.insert(module.op);
  Dict own;
  for (const auto& [op, table] : seed.as_dict())
    if (ops.count(op)) own.set(op, table);
  return own;
}

constexpr int64_t mase_rows = 512;  // what MASE measures on if nothing is said
constexpr size_t most_kept = 64;

}  // namespace

struct SearchExperiment::Kept {
  std::mutex mutex;
  std::map<uint64_t, Graph> networks;  // by the point's hash
};

SearchExperiment::~SearchExperiment() = default;

SearchExperiment::SearchExperiment(const Experiment& experiment, SearchSpec spec)
    : experiment_(experiment), spec_(std::move(spec)), kept_(std::make_unique<Kept>()) {
  Problems problems;
  if (!experiment_.dataset())
    throw Error("ch search", "there are no data to measure on", "name a data set");
  const Dataset& dataset = *experiment_.dataset();
  if (!spec_.rows) spec_.rows = spec_.trained ? std::numeric_limits<int64_t>::max() : mase_rows;
  std::vector<std::unique_ptr<search::SpacePart>> parts;
  if (spec_.seed_path == "--space") spec_.seed = of_this_network(spec_.seed, experiment_.graph());
  if (spec_.space)
    parts.push_back(
        spec_.space->make({experiment_.graph(), spec_.seed, spec_.by, spec_.seed_path}, problems));
  if (!spec_.train.is_null())
    parts.push_back(std::make_unique<search::OptionSpace>(spec_.train, "search.search_space.train",
                                                          training_options(), chosen_members(spec_),
                                                          problems));
  bool design = std::count(spec_.hardware.begin(), spec_.hardware.end(), "area_luts") > 0 ||
                std::count(spec_.hardware.begin(), spec_.hardware.end(), "latency") > 0;
  std::vector<std::string> known = search::software_figures(dataset.classification);
  for (const std::string& name : search::hardware_figures()) known.push_back(name);
  for (const SearchMetric& metric : spec_.metrics) {
    if (std::find(known.begin(), known.end(), metric.name) == known.end())
      problems.add(Error(metric.position, "search.strategy.metrics",
                         fmt::format("'{}' is not measured", printable(metric.name)),
                         suggestion(metric.name, known)));
    design = design || metric.name == "area_luts" || metric.name == "latency";
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
  space_ = std::make_unique<search::CandidateSpace>(std::move(parts));
  if (objectives_.empty())
    throw Error("search.strategy.metrics", "every metric is only limited",
                "give one of them a direction");
  const Split& split = rows_called(dataset, spec_.split);
  if (split.rows() == 0)
    throw Error(dataset.name, fmt::format("has no {} rows to search on", spec_.split),
                "choose another data_loader or --val-split");
  if (spec_.study.trials < 0 && !(space().size() <= 1e6))
    throw Error(
        "search.strategy.setup",
        fmt::format("the space has {} configurations: 'n_trials' is missing",
                    std::isinf(space().size()) ? "any number of" : human_count(space().size())),
        "say how many to try: --n-trials 1000");
  if (!spec_.pruner.is_null() && (objectives_.size() > 1 || !spec_.trained))
    throw Error("search.strategy.setup.pruner",
                spec_.trained ? "pruners compare one objective, and there are several"
                              : "nothing is trained: there are no epochs to stop after",
                spec_.trained ? "set sum_scaled_metrics = true, or leave the pruner out"
                              : "add [search.strategy.sw_runner.basic_train], or leave it out");
  if (!spec_.sampler) {
    // All of it, unless fewer are asked for: those would be drawn blindly.
    const double trials = static_cast<double>(spec_.study.trials);
    const bool all = space().size() <= 1e6 && (trials < 0 || trials >= space().size());
    spec_.sampler = &search::find_sampler(all ? "brute-force" : "tpe", "");
    spec_.sampler_options = validate(Value(Dict{}), spec_.sampler->schema, "sampler");
  }
  const search::SamplerSetup setup{&space(), objectives_.size(), spec_.study.trials};
  if (spec_.sampler->refuses)
    if (const auto reason = spec_.sampler->refuses(setup))
      throw Error("search.strategy.setup.sampler",
                  fmt::format("{} cannot search here: {}", spec_.sampler->name, *reason),
                  "choose another sampler, such as tpe");
  const search::EvaluationRows rows{&dataset, &split, *spec_.rows};
  const int64_t batch = std::max<int64_t>(experiment_.spec().batch_size, 256);
  const bool many = !(std::min(space().size(), spec_.study.trials < 0
                                                   ? std::numeric_limits<double>::infinity()
                                                   : static_cast<double>(spec_.study.trials)) <=
                      static_cast<double>(most_described));
  const auto is_loss = [](const SearchMetric& metric) { return metric.name == "loss"; };
  const bool loss = !many || !dataset.classification ||
                    std::any_of(spec_.metrics.begin(), spec_.metrics.end(), is_loss);
  const search::FigureOptions figures{spec_.compare_to, design, loss};
  // Weights of a network that was never trained are not worth keeping.
  const bool warm = spec_.warm_start && experiment_.network().loaded;
  const search::CandidateUse use{spec_.trained, warm || !spec_.trained, experiment_.spec().seed};
  std::optional<search::Training> training;
  if (spec_.trained || spec_.front_only) {
    check_training();
    training = search::Training{[this](const Dict& changes) {
                                  TrainOptions options = spec_.training(changes).options;
                                  options.threads = 1;  // trials run side by side
                                  return options;
                                },
                                {},
                                spec_.train_rows};
  }
  if (spec_.front_only) {
    const search::CandidateUse later{true, warm, experiment_.spec().seed};
    trained_ = std::make_unique<search::CandidateEvaluator>(
        experiment_.graph(), *space_, rows, batch, figures, later, std::move(training));
    training.reset();
  }
  candidates_ = std::make_unique<search::CandidateEvaluator>(
      experiment_.graph(), *space_, rows, batch, figures, use, std::move(training));
  const auto* only = space_->parts().size() == 1
                         ? dynamic_cast<const search::QuantizeSpace*>(space_->parts()[0].get())
                         : nullptr;
  if (only && !spec_.trained)
    formats_ =
        std::make_unique<search::PtqEvaluator>(experiment_.graph(), *only, rows, batch, figures);
  if (spec_.racing) {
    check_racing();
    race_ = std::make_unique<search::Race>(*spec_.racing);
  }
}

void SearchExperiment::check_racing() const {
  const std::string place = "search.strategy.setup.racing";
  const bool measured =
      std::any_of(spec_.metrics.begin(), spec_.metrics.end(),
                  [](const SearchMetric& metric) { return metric.name == "loss"; });
  if (!formats_)
    throw Error(place, "candidates race where number formats are searched over without training",
                "leave it out; with training, pruner = \"hyperband\" gives up early");
  if (measured || spec_.sum_scaled ||
      std::find(objectives_.begin(), objectives_.end(), "accuracy") == objectives_.end())
    throw Error(place, "candidates race for accuracy, row by row, beside figures known beforehand",
                "make accuracy an objective of its own, and loss none");
}

// Each value of each option once: what a combination of options refuses is told before the search.
void SearchExperiment::check_training() const {
  if (spec_.train.is_null()) {
    spec_.training({});
    return;
  }
  for (const Point& point : search::covering_points(space())) {
    search::Candidate candidate;
    const search::SpacePart& part = *space_->parts().back();
    part.apply({point.end() - static_cast<int64_t>(part.space().dimensions()), point.end()}, {},
               candidate);
    spec_.training(candidate.training);
  }
}

int64_t SearchExperiment::rows() const {
  return std::min(*spec_.rows, rows_called(*experiment_.dataset(), spec_.split).rows());
}

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
                            {"scaled_metrics", std::move(scaled)}};
  return result;
}

// The other objectives do not depend on rows: they are measured first.
Measurement SearchExperiment::raced(const Point& point,
                                    search::PtqEvaluator::Session& session) const {
  search::Figures figures{{{"accuracy", 0.0}, {"loss", 0.0}}, formats_->hardware(point, session)};
  const Measurement known = measured(figures);
  search::Losses others;
  for (size_t k = 0; k < objectives_.size(); ++k)
    if (objectives_[k] != "accuracy")
      others.push_back(maximise_[k] ? -known.values[k] : known.values[k]);
  const Dataset& dataset = *experiment_.dataset();
  const search::RacedScore raced = search::race_network(
      candidates_->untrained(point), dataset, rows_called(dataset, spec_.split), rows(),
      std::max<int64_t>(experiment_.spec().batch_size, 256), others, *race_);
  if (!raced.given_up) {
    figures.software = search::software_of(raced.score, true);
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
  if (formats_) {
    const auto session = std::make_shared<search::PtqEvaluator::Session>(formats_->session());
    if (race_)
      return search::Objective([this, session](const Point& point, const search::Report&) {
        return raced(point, *session);
      });
    search::Objective several([this, session](const Point& point, const search::Report&) {
      return measured(formats_->measure(std::span(&point, 1), *session)[0]);
    });
    several.measure_all = [this, session](std::span<const Point> points) {
      std::vector<Measurement> all;
      for (const search::Figures& figures : formats_->measure(points, *session))
        all.push_back(measured(figures));
      return all;
    };
    several.at_once = session->runner.at_once();
    return several;
  }
  return search::Objective([this, &observer](const Point& point, const search::Report& report) {
    search::CandidateEvaluator::Calls calls;
    calls.cancelled = observer.stop_requested;
    if (objectives_.size() == 1)
      calls.on_epoch = [&](int64_t epoch, const search::Figures& figures) {
        return report(epoch, measured(figures).values[0]);
      };
    search::CandidateEvaluator::Result result = candidates_->measure(point, calls);
    using End = search::CandidateEvaluator::End;
    if (result.end == End::measured) {
      if (spec_.trained) {
        std::lock_guard lock(kept_->mutex);
        if (kept_->networks.size() >= most_kept) kept_->networks.clear();
        kept_->networks[search::hash_point(point)] = std::move(result.network);
      }
      return measured(result.figures);
    }
    Measurement none;
    none.pruned = result.end == End::enough;
    none.interrupted = result.end == End::cancelled;
    none.failure = result.failure;
    return none;
  });
}

search::StudyEnd SearchExperiment::run(search::Storage* storage, const std::string& study,
                                       const search::StudyObserver& observer) {
  search::Trials history(space(), maximise_, study);
  if (storage) storage->open_study({study, maximise_, objectives_});
  const search::SamplerSetup setup{&space(), objectives_.size(), spec_.study.trials};
  std::unique_ptr<search::Pruner> pruner;
  if (!spec_.pruner.is_null())
    pruner = search::make_pruner(spec_.pruner, "search.strategy.setup.pruner");
  search::StudyOptions options = spec_.study;
  options.independent = spec_.sampler->independent;
  search::Study loop(std::move(history), spec_.sampler->make(spec_.sampler_options, setup),
                     std::move(pruner), storage, options);
  std::vector<search::Objective> objectives;
  for (int job = 0; job < spec_.study.jobs; ++job) objectives.push_back(objective(observer));
  const search::StudyEnd end = loop.run(objectives, observer);
  trials_ = std::make_unique<search::Trials>(loop.take_trials());
  complete_best();
  return end;
}

std::optional<SearchExperiment::Pace> SearchExperiment::pace() const {
  constexpr double long_enough = 0.05;  // seconds that a measurement may take
  constexpr double most_counted = 1e9;
  const double size = space().size();
  if (!formats_ || race_ || !(size <= most_counted)) return {};
  search::PtqEvaluator::Session session = formats_->session();
  const auto seconds = [&](std::span<const Point> points) {
    const auto start = std::chrono::steady_clock::now();
    formats_->measure(points, session);
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
  const auto together = static_cast<double>(session.runner.at_once());
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
  if (!formats_) return;
  for (const int64_t number : search::best_trials(*trials_)) {
    Trial& trial = trials_->at(static_cast<size_t>(number));
    const Value* software = trial.user_attributes.find("software_metrics");
    if (!trial.in_space ||
        (software && software->is_dict() && software->as_dict().contains("loss")))
      continue;
    const search::Figures figures = candidates_->measure(trial.point, {}).figures;
    trial.user_attributes.set("software_metrics", figures.software);
  }
}

Graph SearchExperiment::network(int64_t number) const {
  const Point& point = (*trials_)[static_cast<size_t>(number)].point;
  if (!spec_.trained) return candidates_->untrained(point);
  {
    std::lock_guard lock(kept_->mutex);
    const auto kept = kept_->networks.find(search::hash_point(point));
    if (kept != kept_->networks.end()) return kept->second;
  }
  Graph again = candidates_->measure(point, {}).network;
  std::lock_guard lock(kept_->mutex);
  return kept_->networks[search::hash_point(point)] = std::move(again);
}

}  // namespace mase
