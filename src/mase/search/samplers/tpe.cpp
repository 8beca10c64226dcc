// SPDX-License-Identifier: Apache-2.0
// The tree-structured Parzen estimator (Bergstra et al., "Algorithms for hyper-parameter
// optimization", 2011) with Optuna 5's rules: candidates are drawn from the density of good trials,
// and the one where it exceeds the density of the others most is taken. With several objectives the
// good trials are the first domination ranks (Ozaki et al., 2022). Unlike its models it never
// proposes what was tried already.
#include <algorithm>
#include <cmath>
#include <limits>

#include "mase/search/models/parzen.h"
#include "mase/search/models/split.h"
#include "mase/search/samplers/sampler.h"

namespace mase::tpe_sampler {
namespace {

using namespace search;

struct Group {
  std::vector<size_t> parameters;
  ParzenEstimator good, others;
};

// With several objectives the good trials are spread along a front, and numbers drawn together only
// repeat them: Optuna draws each by itself. Where no configuration is tried twice and all of them
// are on a grid there is nothing to repeat, and what is drawn together are neighbours of the front.
bool all_steps(const Space& space) {
  const auto discrete = [](const Parameter& one) { return one.distribution.is_discrete(); };
  return std::all_of(space.parameters().begin(), space.parameters().end(), discrete);
}

class TpeSampler final : public Sampler {
 public:
  TpeSampler(const Value& options, const SamplerSetup& setup)
      : startup_(static_cast<size_t>(options["n_startup_trials"].as_int())),
        candidates_(static_cast<size_t>(options["n_ei_candidates"].as_int())) {
    const bool several = setup.objectives > 1;
    const bool joint = options["multivariate"].is_bool() ? options["multivariate"].as_bool()
                                                         : !several || all_steps(*setup.space);
    const double smoothing = options["smoothing"].as_double();
    const auto add = [&](std::vector<size_t> parameters) {
      groups_.push_back({parameters,
                         {*setup.space, parameters, several, smoothing},
                         {*setup.space, parameters, false, smoothing}});
    };
    for (std::vector<size_t> group : setup.space->groups()) {
      const auto fixed = [&](size_t i) {
        return setup.space->parameters()[i].distribution.is_single();
      };
      group.erase(std::remove_if(group.begin(), group.end(), fixed), group.end());
      if (group.empty()) continue;
      if (joint) {
        add(std::move(group));
        continue;
      }
      for (const size_t parameter : group) add({parameter});
    }
  }

  Suggestion suggest(const Trials& trials, const Request& request) override {
    Random random(request.seed, "search tpe", static_cast<uint64_t>(request.number));
    history_.absorb(trials, request.visible);
    if (history_.finished() < startup_)
      return {first_untried(trials, request, random,
                            [&] { return random_point(trials.space(), random); })};
    std::vector<uint32_t> below, above;
    history_.split(good_trials(history_.finished(), trials.objectives()), below, above);
    for (Group& group : groups_) observe(group, trials, below, above);
    // With several groups each takes its best, and only the whole can be old: then another round.
    constexpr int rounds = 8;
    Point best;
    for (int round = 0; round < rounds; ++round) {
      const std::optional<Point> found = propose(trials, request, random, best);
      if (found) return {*found};
    }
    return {untried(trials, request, best, random)};
  }

 private:
  static void observe(Group& group, const Trials& trials, const std::vector<uint32_t>& below,
                      const std::vector<uint32_t>& above) {
    const auto point = [&](uint32_t number) -> const Point& { return trials[number].point; };
    const auto here = [&](const std::vector<uint32_t>& all) {
      std::vector<uint32_t> kept;
      for (const uint32_t number : all)
        if (!std::isnan(point(number)[group.parameters.front()])) kept.push_back(number);
      return kept;
    };
    const bool conditional = trials.space().parameters()[group.parameters.front()].parent >= 0;
    group.good.observe(conditional ? here(below) : below, point);
    group.others.observe(conditional ? here(above) : above, point);
  }

  // A new point, or nothing; `last` is the best one there was, old or not.
  std::optional<Point> propose(const Trials& trials, const Request& request, Random& random,
                               Point& last) const {
    const Space& space = trials.space();
    Point whole(space.dimensions(), std::numeric_limits<double>::quiet_NaN());
    const bool single = groups_.size() == 1;
    for (const Group& group : groups_) {
      fix_single(space, whole);
      if (!space.exists(group.parameters.front(), whole)) continue;
      std::vector<Point> drawn;
      for (size_t i = 0; i < candidates_; ++i) drawn.push_back(group.good.draw(random));
      std::vector<double> good(drawn.size()), others(drawn.size());
      group.good.log_density(drawn, good);
      group.others.log_density(drawn, good, others);
      size_t best = best_of(good, others, [](size_t) { return true; });
      const auto is_new_one = [&](size_t i) {
        return is_new(trials, request, group, whole, drawn[i]);
      };
      if (single && !is_new_one(best)) {
        group.others.log_density(drawn, others);
        const size_t best_new = best_of(good, others, is_new_one);
        if (best_new < drawn.size()) best = best_new;
      }
      put(group, drawn[best], whole);
    }
    fix_single(space, whole);
    last = whole;
    if (request.repeats || !trials.tried(whole)) return whole;
    return {};
  }

  // Where the density of good trials exceeds that of the others most; as many as there are: none.
  template <class Allowed>
  static size_t best_of(const std::vector<double>& good, const std::vector<double>& others,
                        const Allowed& allowed) {
    size_t best = good.size();
    for (size_t i = 0; i < good.size(); ++i)
      if ((best == good.size() || good[i] - others[i] > good[best] - others[best]) && allowed(i))
        best = i;
    return best;
  }

  static void fix_single(const Space& space, Point& point) {
    for (size_t i = 0; i < point.size(); ++i) {
      const Distribution& distribution = space.parameters()[i].distribution;
      if (distribution.is_single() && std::isnan(point[i]) && space.exists(i, point))
        point[i] = distribution.low;
    }
  }
  static void put(const Group& group, const Point& from, Point& whole) {
    for (size_t i = 0; i < group.parameters.size(); ++i) whole[group.parameters[i]] = from[i];
  }
  static bool is_new(const Trials& trials, const Request& request, const Group& group,
                     const Point& whole, const Point& part) {
    if (request.repeats) return true;
    Point point = whole;
    put(group, part, point);
    fix_single(trials.space(), point);
    return !trials.tried(point);
  }

  size_t startup_, candidates_;
  std::vector<Group> groups_;
  SplitHistory history_;
};

const Register<SamplerRecord> registered{{
    .name = "tpe",
    .aliases = {"motpe"},
    .summary = "the tree-structured Parzen estimator, for one objective or several",
    .schema = {{{.name = "n_startup_trials",
                 .type = FieldType::integer,
                 .default_value = 10,
                 .help = "random trials first",
                 .minimum = 1},
                {.name = "n_ei_candidates",
                 .type = FieldType::integer,
                 .default_value = 24,
                 .help = "candidates of which the best is taken",
                 .minimum = 1,
                 .maximum = 100000},
                {.name = "multivariate",
                 .type = FieldType::boolean,
                 .help = "parameters together, not one by one (default: with one objective, and in "
                         "spaces without real numbers)"},
                {.name = "smoothing",
                 .type = FieldType::number,
                 .default_value = 0.3,
                 .help = "how easily a whole number takes a value far from the good ones; 0: as in "
                         "Optuna",
                 .minimum = 0,
                 .maximum = 1}}},
    .make = [](const Value& options, const SamplerSetup& setup) -> std::unique_ptr<Sampler> {
      return std::make_unique<TpeSampler>(options, setup);
    },
}};

}  // namespace
}  // namespace mase::tpe_sampler
