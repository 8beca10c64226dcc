// SPDX-License-Identifier: Apache-2.0
// Bayesian optimisation: a Gaussian process is fitted to each objective, and the point with the
// largest expected improvement is proposed; with several objectives, with the largest expected gain
// of volume under the front. Figures are warped first, so that a few bad trials do not hide the
// differences between the good ones. Its cost grows with the third power of the trials: it is for
// hundreds of them, of networks that take long to measure.
#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>

#include "mase/search/models/expected_volume.h"
#include "mase/search/models/gaussian_process.h"
#include "mase/search/models/warp.h"
#include "mase/search/samplers/sampler.h"

namespace mase::gp_sampler {
namespace {

using namespace search;
using Vector = std::vector<double>;

constexpr size_t most_trials = 300;  // that a process is fitted to: the best, and the latest
constexpr size_t random_candidates = 1024, starts = 6, evolved_steps = 100;
constexpr double all_candidates = 2048;  // so few are all looked at

Vector to_cube(const Space& space, const Point& point) {
  Vector x;
  for (size_t i = 0; i < point.size(); ++i) {
    const Distribution& d = space.parameters()[i].distribution;
    if (std::isnan(point[i]))
      x.push_back(0.5);
    else if (d.is_categorical() || d.is_single())
      x.push_back(point[i]);
    else
      x.push_back((d.to_line(point[i]) - d.line_low()) / (d.line_high() - d.line_low()));
  }
  return x;
}

// Trials that the processes learn from, and what they learn.
struct Data {
  std::vector<Vector> points;   // in the cube
  std::vector<Losses> losses;   // infeasible ones have the worst of all
  std::vector<size_t> numbers;  // of the trials
  std::vector<Vector> running;  // points whose results are not known yet
};

Data data_of(const Trials& trials, const std::vector<size_t>& seen) {
  Data data;
  Losses worst(trials.objectives(), -std::numeric_limits<double>::infinity());
  for (const size_t i : seen) {
    data.numbers.push_back(i);
    data.points.push_back(to_cube(trials.space(), trials[i].point));
    data.losses.emplace_back();
    for (size_t k = 0; k < trials.objectives(); ++k) {
      data.losses.back().push_back(trials.loss(trials[i], k));
      worst[k] = std::max(worst[k], data.losses.back().back());
    }
  }
  for (size_t s = 0; s < seen.size(); ++s)
    if (!trials[seen[s]].feasible()) data.losses[s] = worst;
  return data;
}

// At most so many: half of them the best, half the latest.
std::vector<size_t> thinned(const Trials& trials, std::vector<size_t> seen) {
  if (seen.size() <= most_trials) return seen;
  const std::vector<int> ranks = domination_ranks(data_of(trials, seen).losses);
  std::vector<size_t> order(seen.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return ranks[a] < ranks[b]; });
  std::vector<bool> kept(seen.size());
  for (size_t i = 0; i < most_trials / 2; ++i) kept[order[i]] = true;
  for (size_t i = seen.size() - most_trials / 2; i < seen.size(); ++i) kept[i] = true;
  std::vector<size_t> rest;
  for (size_t i = 0; i < seen.size(); ++i)
    if (kept[i]) rest.push_back(seen[i]);
  return rest;
}

// One objective: figures go in as losses, and the process makes the warped ones large.
struct Model {
  Warp warp;
  GaussianProcess process;

  // Chances that the figure is below each of these; `doubt`: the share of the deviation that
  // counts.
  Vector below(const GaussianProcess::Posterior& posterior, const Vector& nodes,
               double doubt) const {
    const double scale = 1 / std::sqrt(2 * std::max(doubt * doubt * posterior.variance, 1e-12));
    Vector chances;
    for (const double warped : nodes)  // a loss below it is a value above its negative
      chances.push_back(0.5 * std::erfc(-(warped + posterior.mean) * scale));
    return chances;
  }
};

class GpSampler final : public Sampler {
 public:
  GpSampler(const Value& options, const SamplerSetup& setup)
      : startup_(options["n_startup_trials"].as_int()) {
    for (const Parameter& parameter : setup.space->parameters())
      categorical_.push_back(parameter.distribution.is_categorical());
  }

  Suggestion suggest(const Trials& trials, const Request& request) override {
    const Space& space = trials.space();
    Random random(request.seed, "search gp", static_cast<uint64_t>(request.number));
    std::vector<size_t> seen, running;
    for (size_t i = 0; i < trials.size(); ++i) {
      const Trial& trial = trials[i];
      if (!trial.in_space || trial.point.size() != space.dimensions()) continue;
      const bool known = i < request.visible && trial.state == TrialState::complete;
      if (known && std::all_of(trial.values.begin(), trial.values.end(),
                               [](double x) { return std::isfinite(x); }))
        seen.push_back(i);
      else if (trial.state == TrialState::running || (i >= request.visible && trial.finished()))
        running.push_back(i);
    }
    if (static_cast<int64_t>(seen.size()) < startup_) {
      bool first = true;
      return {first_untried(trials, request, random, [&] {
        return std::exchange(first, false)
                   ? stratified_point(space, request.seed, request.number, startup_)
                   : random_point(space, random);
      })};
    }
    const size_t fitted = checkpoint(seen.size());
    Data data = data_of(trials, thinned(trials, seen));
    for (const size_t i : running) data.running.push_back(to_cube(space, trials[i].point));
    const std::vector<GpParameters>& parameters =
        fit(trials, {seen.begin(), seen.begin() + static_cast<std::ptrdiff_t>(fitted)});
    std::vector<Model> models;
    for (size_t k = 0; k < trials.objectives(); ++k)
      models.push_back(model(data, k, parameters[k]));
    const std::vector<size_t> best = pareto_front(data.losses);
    std::vector<Point> roots;
    for (const size_t i : best) roots.push_back(trials[data.numbers[i]].point);
    const Point point = models.size() == 1
                            ? improve_one(trials, request, data, models[0], roots, random)
                            : improve_volume(trials, request, data, models, best, roots, random);
    return {untried(trials, request, point, random)};
  }

 private:
  // Lengths and noise change little from trial to trial: they are fitted when a tenth is new.
  static size_t checkpoint(size_t n) {
    size_t at = 20;
    if (n <= at) return n;
    for (size_t next = at; next <= n; next = at + std::max<size_t>(1, at / 10)) at = next;
    return at;
  }

  const std::vector<GpParameters>& fit(const Trials& trials, std::vector<size_t> seen) {
    std::vector<size_t> key = seen;
    const auto known = fits_.find(key);
    if (known != fits_.end()) return known->second;
    const Data data = data_of(trials, thinned(trials, std::move(seen)));
    std::vector<GpParameters> all;
    for (size_t k = 0; k < trials.objectives(); ++k) {
      const GpParameters start{Vector(trials.space().dimensions(), 1.0), 1, 1e-2};
      all.push_back(GaussianProcess::fit(data.points, categorical_,
                                         values_of(data, k, warp_of(data, k)), start));
    }
    fits_.clear();
    return fits_[std::move(key)] = std::move(all);
  }

  static Warp warp_of(const Data& data, size_t objective) {
    Vector losses;
    for (const Losses& one : data.losses) losses.push_back(one[objective]);
    return Warp(losses);
  }
  static Vector values_of(const Data& data, size_t objective, const Warp& warp) {
    Vector values;
    for (const Losses& one : data.losses) values.push_back(-warp(one[objective]));
    return values;
  }

  // Trials that still run are believed to give what the process expects of them, so that nobody
  // looks where somebody is looking already.
  Model model(const Data& data, size_t objective, const GpParameters& parameters) const {
    const Warp warp = warp_of(data, objective);
    Vector values = values_of(data, objective, warp);
    GaussianProcess process(data.points, categorical_, values, parameters);
    if (data.running.empty()) return {warp, std::move(process)};
    std::vector<Vector> points = data.points;
    for (const GaussianProcess::Posterior& at : process.at(data.running)) values.push_back(at.mean);
    points.insert(points.end(), data.running.begin(), data.running.end());
    return {warp, GaussianProcess(points, categorical_, values, parameters)};
  }

  static Point improve_one(const Trials& trials, const Request& request, const Data& data,
                           const Model& model, const std::vector<Point>& roots, Random& random) {
    const Vector values = values_of(data, 0, model.warp);
    const double best = *std::max_element(values.begin(), values.end());
    return improve(
        trials, request, roots,
        [&](const std::vector<Vector>& points) {
          Vector gains;
          for (const GaussianProcess::Posterior& at : model.process.at(points))
            gains.push_back(log_expected_improvement(at.mean, at.variance, best));
          return gains;
        },
        random);
  }

  static Point improve_volume(const Trials& trials, const Request& request, const Data& data,
                              const std::vector<Model>& models, std::vector<size_t> best,
                              const std::vector<Point>& roots, Random& random) {
    const size_t objectives = models.size();
    // Boxes grow with the front's size to the power of the objectives less one.
    const size_t most = objectives == 2 ? 256 : objectives == 3 ? 64 : 12;
    if (best.size() > most) {
      std::vector<size_t> fewer;
      for (const uint32_t i : random.permutation(static_cast<uint32_t>(best.size())))
        if (fewer.size() < most) fewer.push_back(best[i]);
      best = std::move(fewer);
    }
    std::vector<Losses> front;
    for (const size_t i : best) front.push_back(data.losses[i]);
    Losses reference(objectives, -std::numeric_limits<double>::infinity()), lowest;
    for (const Losses& one : data.losses)
      for (size_t k = 0; k < objectives; ++k) reference[k] = std::max(reference[k], one[k]);
    for (size_t k = 0; k < objectives; ++k) {
      double least = front[0][k], most = least;
      for (const Losses& one : front) {
        least = std::min(least, one[k]);
        most = std::max(most, one[k]);
      }
      // The more objectives, the more of the volume lies at the ends of the front: from the worst
      // trial there would be nothing but ends.
      constexpr double beyond = 0.1;
      if (objectives > 2 && most > least)
        reference[k] = std::min(reference[k], most + beyond * (most - least));
      constexpr double deviations = 2;  // that a figure may be better than all so far
      lowest.push_back(models[k].warp.back(models[k].warp(least) - deviations));
    }
    // With three objectives and more, most of the volume is to be had where one of them is at its
    // best. There the doubt of a process outweighs what it expects anywhere else, and suggestions
    // would go from one corner of the space to the next: what is expected counts, and doubt little.
    const double doubt = objectives > 2 ? 0.05 : 1;
    const ExpectedVolume volume(front, reference, lowest);
    std::vector<Vector> nodes(objectives);
    for (size_t k = 0; k < objectives; ++k)
      for (const double node : volume.nodes(k)) nodes[k].push_back(models[k].warp(node));
    return improve(
        trials, request, roots,
        [&](const std::vector<Vector>& points) {
          std::vector<std::vector<GaussianProcess::Posterior>> posteriors;
          for (const Model& model : models) posteriors.push_back(model.process.at(points));
          Vector gains;
          std::vector<Vector> below(objectives);
          for (size_t p = 0; p < points.size(); ++p) {
            for (size_t k = 0; k < objectives; ++k)
              below[k] = models[k].below(posteriors[k][p], nodes[k], doubt);
            gains.push_back(std::log(std::max(volume.expect(below), 1e-300)));
          }
          return gains;
        },
        random);
  }

  // The most promising of random points and of neighbours of the best (`roots`), refined: numbers
  // by an evolution of one parent with steps that grow and shrink, discrete parameters by trying
  // all their values one at a time.
  template <class Gains>
  static Point improve(const Trials& trials, const Request& request,
                       const std::vector<Point>& roots, const Gains& gains, Random& random) {
    const Space& space = trials.space();
    const auto is_new = [&](const Point& point) { return request.repeats || !trials.tried(point); };
    const auto gains_of = [&](const std::vector<Point>& points) {
      std::vector<Vector> cube;
      for (const Point& point : points) cube.push_back(to_cube(space, point));
      return gains(cube);
    };
    std::vector<Point> pool;
    const auto add = [&](Point point) {
      if (is_new(point)) pool.push_back(std::move(point));
    };
    const bool all = space.size() <= all_candidates;
    if (all) {
      for (double i = 0; i < space.size(); ++i) add(space.nth(i));
    } else {
      for (size_t i = 0; i < random_candidates; ++i) add(random_point(space, random));
      for (size_t i = 0; i < random_candidates / 4; ++i)
        add(changed(space, roots[random.below(roots.size())], i % 2 ? 0.1 : 0.02, random));
    }
    if (pool.empty()) return roots.front();
    const Vector merits = gains_of(pool);
    std::vector<size_t> order(pool.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return merits[a] > merits[b]; });
    if (all) return pool[order[0]];
    std::vector<Point> parents;
    Vector values;
    for (size_t i = 0; i < std::min(order.size(), starts); ++i) {
      parents.push_back(pool[order[i]]);
      values.push_back(merits[order[i]]);
    }
    const bool discrete = !std::isinf(space.size());
    if (!discrete) evolve(space, is_new, gains_of, parents, values, random);
    for (size_t i = 0; i < parents.size(); ++i)
      climb(space, is_new, gains_of, parents[i], values[i], random);
    return parents[static_cast<size_t>(std::max_element(values.begin(), values.end()) -
                                       values.begin())];
  }

  template <class IsNew, class GainsOf>
  static void evolve(const Space& space, const IsNew& is_new, const GainsOf& gains_of,
                     std::vector<Point>& parents, Vector& values, Random& random) {
    Vector widths(parents.size(), 0.1);
    for (size_t step = 0; step < evolved_steps; ++step) {
      std::vector<Point> children;
      for (size_t i = 0; i < parents.size(); ++i)
        children.push_back(changed(space, parents[i], widths[i], random));
      const Vector gained = gains_of(children);
      for (size_t i = 0; i < parents.size(); ++i) {
        const bool better = gained[i] > values[i] && is_new(children[i]);
        widths[i] = std::clamp(widths[i] * (better ? 1.5 : 0.9), 1e-5, 0.5);
        if (!better) continue;
        parents[i] = std::move(children[i]);
        values[i] = gained[i];
      }
    }
  }

  template <class IsNew, class GainsOf>
  static void climb(const Space& space, const IsNew& is_new, const GainsOf& gains_of, Point& point,
                    double& value, Random& random) {
    constexpr int most_steps = 30;
    for (int step = 0; step < most_steps; ++step) {
      std::vector<Point> near;
      for (size_t i = 0; i < point.size(); ++i) {
        const Distribution& d = space.parameters()[i].distribution;
        if (std::isnan(point[i]) || d.is_single() || !d.is_discrete()) continue;
        const double at = d.index_of(point[i]);
        constexpr double few = 32;
        for (double index = 0, distance = 1; index < d.count();
             index += d.count() <= few ? 1 : distance) {
          if (d.count() > few) distance = std::max(1.0, std::floor(std::abs(index - at) / 4));
          Point next = point;
          next[i] = d.nth(index);
          if (next[i] == point[i]) continue;
          complete_point(space, next, random);
          if (is_new(next)) near.push_back(std::move(next));
        }
      }
      if (near.empty()) return;
      const Vector gained = gains_of(near);
      const auto best = std::max_element(gained.begin(), gained.end());
      if (!(*best > value)) return;
      value = *best;
      point = near[static_cast<size_t>(best - gained.begin())];
    }
  }

  // Each parameter moves with a chance: a number by a share of its range, a choice to another.
  static Point changed(const Space& space, const Point& from, double width, Random& random) {
    Point point = from;
    const double chance = std::max(0.3, 1 / static_cast<double>(point.size()));
    for (size_t i = 0; i < point.size(); ++i) {
      const Distribution& d = space.parameters()[i].distribution;
      if (std::isnan(point[i]) || d.is_single() || random.uniform() >= chance) continue;
      if (d.is_categorical()) {
        point[i] = static_cast<double>(random.below(static_cast<uint64_t>(d.count())));
        continue;
      }
      const double range = d.line_high() - d.line_low();
      double step = width * range * random.normal();
      if (d.step > 0 && !d.log && std::abs(step) < d.step) step = std::copysign(d.step, step);
      point[i] = d.from_line(std::clamp(d.to_line(point[i]) + step, d.line_low(), d.line_high()));
    }
    complete_point(space, point, random);
    return point;
  }

  int64_t startup_;
  std::vector<bool> categorical_;
  std::map<std::vector<size_t>, std::vector<GpParameters>> fits_;  // by trials: the latest
};

const Register<SamplerRecord> registered{{
    .name = "gp",
    .aliases = {"bayesian"},
    .summary = "Bayesian optimisation with a Gaussian process: few trials that take long",
    .schema = {{{.name = "n_startup_trials",
                 .type = FieldType::integer,
                 .default_value = 10,
                 .help = "trials first that are spread evenly over the space",
                 .minimum = 2}}},
    .make = [](const Value& options, const SamplerSetup& setup) -> std::unique_ptr<Sampler> {
      return std::make_unique<GpSampler>(options, setup);
    },
}};

}  // namespace
}  // namespace mase::gp_sampler
