// SPDX-License-Identifier: Apache-2.0
// What a search is before its first trial: figures, space, sampler, evaluators, identity.
#include "mase/run/search/search_experiment.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "mase/base/text.h"
#include "mase/data/token_rows.h"
#include "mase/run/search/search_identity.h"
#include "mase/run/search/search_kept.h"
#include "mase/run/search/search_training.h"
#include "mase/search/spaces/option_space.h"

namespace mase {
namespace {

using search::FigureNeeds;
using search::FigureRecord;
using search::Point;

constexpr double most_without_a_number = 1e6;  // of trials: every configuration

// A flag names every kind of layer with products; those that this network has.
Value of_this_network(const Value& seed, const Graph& graph) {
  std::set<std::string> ops = {"default"};
  for (const auto& [path, module] : graph.modules()) ops.insert(module.op);
  Dict own;
  for (const auto& [op, table] : seed.as_dict())
    if (ops.count(op)) own.set(op, table);
  return own;
}

}  // namespace

SearchExperiment::~SearchExperiment() = default;

SearchExperiment::SearchExperiment(const Experiment& experiment, SearchSpec spec)
    : experiment_(experiment),
      spec_(std::move(spec)),
      graph_(experiment.graph()),
      kept_(std::make_unique<KeptNetworks>()) {
  if (!experiment_.dataset())
    throw Error("ch search", "there are no data to measure on", "name a data set");
  if (!spec_.rows) spec_.rows = std::numeric_limits<int64_t>::max();
  Problems problems;
  choose_figures(problems);
  if (figures_.needs(FigureNeeds::design)) fold_batch_norms();
  make_space(problems);
  problems.throw_if_any();
  if (objectives_.empty())
    throw Error("search.strategy.metrics", "every metric is only limited",
                "give one of them a direction");
  if (split_rows() == 0)
    throw Error(experiment_.dataset()->name,
                fmt::format("has no {} rows to search on", spec_.split),
                "choose another data_loader or --val-split");
  if (spec_.study.trials < 0 && !(space().size() <= most_without_a_number))
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
  choose_sampler();
  make_evaluators();
  if (spec_.racing) {
    check_racing();
    race_ = std::make_unique<search::Race>(*spec_.racing);
  }
}

// Objectives, and the figures that are measured: all that need rows, and of the others those that
// metrics or runners name.
void SearchExperiment::choose_figures(Problems& problems) {
  const bool classes = experiment_.dataset()->classification;
  const Registry<FigureRecord>& registry = Registry<FigureRecord>::instance();
  std::vector<const FigureRecord*> wanted;
  const auto want = [&](const FigureRecord* record) {
    if (std::find(wanted.begin(), wanted.end(), record) == wanted.end()) wanted.push_back(record);
  };
  std::vector<std::string> known;
  for (const FigureRecord* record : registry.all()) {
    if (!classes && !record->for_numbers) continue;
    known.push_back(record->name);
    if (record->is_software()) want(record);
  }
  for (const std::string& name : spec_.hardware) want(&registry.get(name));
  for (SearchMetric& metric : spec_.metrics) {
    const FigureRecord* record = registry.find(metric.name);
    if (!record || !std::count(known.begin(), known.end(), record->name)) {
      problems.add(Error(metric.position, "search.strategy.metrics",
                         fmt::format("'{}' is not measured", printable(metric.name)),
                         suggestion(metric.name, known)));
      continue;
    }
    metric.name = record->name;
    want(record);
    if (metric.maximise && !spec_.sum_scaled) {
      objectives_.push_back(metric.name);
      maximise_.push_back(*metric.maximise);
    }
  }
  if (spec_.sum_scaled) {
    objectives_ = {"sum_scaled_metrics"};
    maximise_ = {spec_.sum_maximise};
  }
  all_figures_ = figures_ = search::FigureSet(std::move(wanted), spec_.compare_to);
}

// Hardware is integers from end to end, and a batch norm beside a rounded layer is none.
void SearchExperiment::fold_batch_norms() {
  PassContext context;
  const PassResult result = run_pass(graph_, "fuse_batch_norm", Dict{}, context);
  for (const Value& pair : result.data["fused"].as_list()) folded_.push_back(pair.as_string());
}

void SearchExperiment::make_space(Problems& problems) {
  std::vector<std::unique_ptr<search::SpacePart>> parts;
  if (spec_.seed_path == "--space") spec_.seed = of_this_network(spec_.seed, graph_);
  if (spec_.space)
    parts.push_back(spec_.space->make({graph_, spec_.seed, spec_.by, spec_.seed_path}, problems));
  if (!spec_.train.is_null())
    parts.push_back(std::make_unique<search::OptionSpace>(spec_.train, "search.search_space.train",
                                                          training_options(), chosen_members(spec_),
                                                          problems));
  problems.throw_if_any();
  space_ = std::make_unique<search::CandidateSpace>(std::move(parts));
}

void SearchExperiment::choose_sampler() {
  if (!spec_.sampler) {
    // All of it, unless fewer are asked for: those would be drawn blindly.
    const double trials = static_cast<double>(spec_.study.trials);
    const bool all =
        space().size() <= most_without_a_number && (trials < 0 || trials >= space().size());
    spec_.sampler = &search::find_sampler(all ? "brute-force" : "tpe", "");
    spec_.sampler_options = validate(Value(Dict{}), spec_.sampler->schema, "sampler");
  }
  if (!spec_.sampler->refuses) return;
  const search::SamplerSetup setup{&space(), objectives_.size(), spec_.study.trials};
  if (const auto reason = spec_.sampler->refuses(setup))
    throw Error("search.strategy.setup.sampler",
                fmt::format("{} cannot search here: {}", spec_.sampler->name, *reason),
                "choose another sampler, such as tpe");
}

void SearchExperiment::make_evaluators() {
  const Dataset& dataset = *experiment_.dataset();
  const double planned = spec_.study.trials < 0 ? std::numeric_limits<double>::infinity()
                                                : static_cast<double>(spec_.study.trials);
  const bool many = !(std::min(space().size(), planned) <= static_cast<double>(most_described));
  const auto is_loss = [](const SearchMetric& metric) { return metric.name == "loss"; };
  if (many && dataset.classification && !spec_.trained &&
      std::none_of(spec_.metrics.begin(), spec_.metrics.end(), is_loss)) {
    std::vector<const FigureRecord*> fewer;
    for (const FigureRecord* record : figures_.wanted())
      if (record->name != "loss") fewer.push_back(record);
    figures_ = search::FigureSet(std::move(fewer), spec_.compare_to);
  }
  const search::EvaluationRows rows{&dataset, &split_called(dataset, spec_.split), *spec_.rows};
  const int64_t batch = std::max<int64_t>(experiment_.spec().batch_size, 256);
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
    trained_ = search::make_evaluator(
        {graph_, *space_, rows, batch, figures_, later, std::move(training)});
    training.reset();
  }
  evaluator_ =
      search::make_evaluator({graph_, *space_, rows, batch, figures_, use, std::move(training)});
}

void SearchExperiment::check_racing() const {
  const std::string place = "search.strategy.setup.racing";
  const auto& registry = Registry<FigureRecord>::instance();
  const bool measured =
      std::any_of(spec_.metrics.begin(), spec_.metrics.end(), [&](const SearchMetric& metric) {
        return metric.name != "accuracy" && registry.get(metric.name).is_software();
      });
  if (!evaluator_->shares_work())
    throw Error(place, "candidates race where number formats are searched over without training",
                "leave it out; with training, pruner = \"hyperband\" gives up early");
  if (measured || spec_.sum_scaled || has_token_labels(*experiment_.dataset()) ||
      std::find(objectives_.begin(), objectives_.end(), "accuracy") == objectives_.end())
    throw Error(place, "candidates race for accuracy, row by row, beside figures known beforehand",
                has_token_labels(*experiment_.dataset())
                    ? "leave it out: the rows are texts"
                    : "make accuracy an objective of its own, and "
                      "loss none");
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

int64_t SearchExperiment::split_rows() const {
  return split_called(*experiment_.dataset(), spec_.split).rows();
}

int64_t SearchExperiment::rows() const { return std::min(*spec_.rows, split_rows()); }

std::string SearchExperiment::rows_text() const {
  if (rows() == split_rows()) return fmt::format("{} {} rows", with_thousands(rows()), spec_.split);
  return fmt::format("the first {} of {} {} rows", with_thousands(rows()),
                     with_thousands(split_rows()), spec_.split);
}

Dict SearchExperiment::identity() const {
  const Dataset& dataset = *experiment_.dataset();
  const bool warm = !spec_.trained || (spec_.warm_start && experiment_.network().loaded);
  std::string rows = rows_digest(split_called(dataset, spec_.split), this->rows());
  List metrics;
  for (const SearchMetric& metric : spec_.metrics)
    metrics.emplace_back(
        Dict{{"name", metric.name},
             {"scale", metric.scale},
             {"lower_bound", metric.lower_bound ? Value(*metric.lower_bound) : Value()},
             {"upper_bound", metric.upper_bound ? Value(*metric.upper_bound) : Value()}});
  Dict measured{{"metrics", std::move(metrics)},
                {"sum_scaled_metrics", spec_.sum_scaled},
                {"compare_to", spec_.compare_to}};
  if (spec_.trained) {
    rows += "/" + rows_digest(dataset.train,
                              spec_.train_rows > 0 ? spec_.train_rows : dataset.train.rows());
    measured.set("training", spec_.training_settings);
    if (!warm) measured.set("seed", static_cast<int64_t>(experiment_.spec().seed));
  }
  return {{"mase:network", network_digest(graph_, warm)},
          {"mase:rows", rows},
          {"mase:measured", std::move(measured)}};
}

void SearchExperiment::check_identity(search::Storage& storage, const std::string& study) {
  const Dict ours = identity();
  const Dict theirs = storage.said_first(ours);
  static const std::vector<std::pair<std::string, std::string>> meanings = {
      {"mase:network", "another network (structure or weights)"},
      {"mase:rows", "other rows (data, split, number or scaling)"},
      {"mase:measured", "other settings of what is measured (metrics, scales, bounds, training)"}};
  differences_.clear();
  for (const auto& [key, meaning] : meanings)
    if (const Value* said = theirs.find(key); said && to_json(*said) != to_json(ours.at(key)))
      differences_.push_back(meaning);
  if (!differences_.empty() && !spec_.accept_differences)
    throw Error("--study",
                fmt::format("the trials of study '{}' were measured with {}", printable(study),
                            join(differences_, " and ")),
                "give another --study, or --accept-differences to take them for this search's");
}

}  // namespace mase
