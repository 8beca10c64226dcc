// SPDX-License-Identifier: Apache-2.0
// Bayesian optimisation: a Gaussian process is fitted to the trials, and the point with the largest
// expected improvement is proposed. Several objectives are put together with random weights in each
// trial (ParEGO: Knowles, 2006). Its cost grows with the third power of the trials: it is for
// hundreds of them, of networks that take long to measure.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "mase/search/gaussian_process.h"
#include "mase/search/sampler.h"

namespace mase::gp_sampler {
namespace {

using namespace search;
using Vector = std::vector<double>;

constexpr size_t random_candidates = 1024, starts = 8;
constexpr int refinements = 40;
constexpr size_t most_trials = 400;  // that the process is fitted to: the best, and the latest

class GpSampler final : public Sampler {
 public:
  GpSampler(const Value& options, const SamplerSetup& setup)
      : startup_(static_cast<size_t>(options["n_startup_trials"].as_int())) {
    for (const Parameter& parameter : setup.space->parameters())
      categorical_.push_back(parameter.distribution.is_categorical());
  }

  Suggestion suggest(const Trials& trials, const Request& request) override {
    const Space& space = trials.space();
    Random random(request.seed, "search gp", static_cast<uint64_t>(request.number));
    std::vector<size_t> seen;
    for (size_t i = 0; i < std::min(request.visible, trials.size()); ++i)
      if (trials[i].state == TrialState::complete && trials[i].in_space &&
          std::all_of(trials[i].values.begin(), trials[i].values.end(),
                      [](double x) { return std::isfinite(x); }))
        seen.push_back(i);
    if (seen.size() < startup_)
      return {first_untried(trials, request, random, [&] { return random_point(space, random); })};
    Vector values = merits(trials, seen, random);
    thin(seen, values);
    std::vector<Vector> points;
    for (const size_t i : seen) points.push_back(to_cube(space, trials[i].point));
    GpParameters start{Vector(space.dimensions(), 1.0), 1, 1e-2};
    const GaussianProcess process(points, categorical_, values,
                                  GaussianProcess::fit(points, categorical_, values, start));
    const double best = *std::max_element(values.begin(), values.end());
    const size_t best_at =
        static_cast<size_t>(std::max_element(values.begin(), values.end()) - values.begin());
    const auto gain = [&](const Point& point) {
      const GaussianProcess::Posterior p = process.at(to_cube(space, point));
      return log_expected_improvement(p.mean, p.variance, best);
    };
    return {untried(trials, request,
                    improve(trials, request, trials[seen[best_at]].point, gain, random), random)};
  }

 private:
  static Vector to_cube(const Space& space, const Point& point) {
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

  // One number per trial, large is good, mean 0 and deviation 1; infeasible ones are the worst.
  static Vector merits(const Trials& trials, const std::vector<size_t>& seen, Random& random) {
    const size_t objectives = trials.objectives();
    Vector weights(objectives, 1.0), values;
    if (objectives > 1) {
      double sum = 0;
      for (double& weight : weights) sum += weight = -std::log(1 - random.uniform());
      for (double& weight : weights) weight /= sum;
    }
    Vector low(objectives, std::numeric_limits<double>::infinity()), high(objectives, -low[0]);
    for (const size_t i : seen)
      for (size_t k = 0; k < objectives; ++k) {
        low[k] = std::min(low[k], trials.loss(trials[i], k));
        high[k] = std::max(high[k], trials.loss(trials[i], k));
      }
    for (const size_t i : seen) {
      double most = 0, sum = 0;
      for (size_t k = 0; k < objectives; ++k) {
        const double loss = objectives > 1 ? (trials.loss(trials[i], k) - low[k]) /
                                                 std::max(1e-300, high[k] - low[k])
                                           : trials.loss(trials[i], k);
        most = k == 0 ? weights[k] * loss : std::max(most, weights[k] * loss);
        sum += weights[k] * loss;
      }
      values.push_back(-(objectives > 1 ? most + 0.05 * sum : most));
    }
    const double worst = *std::min_element(values.begin(), values.end());
    for (size_t s = 0; s < seen.size(); ++s)
      if (!trials[seen[s]].feasible()) values[s] = worst;
    double mean = 0, square = 0;
    for (const double value : values) mean += value / static_cast<double>(values.size());
    for (const double value : values) square += (value - mean) * (value - mean);
    const double deviation = std::sqrt(square / static_cast<double>(values.size()));
    for (double& value : values) value = (value - mean) / (deviation > 0 ? deviation : 1);
    return values;
  }

  static void thin(std::vector<size_t>& seen, Vector& values) {
    if (seen.size() <= most_trials) return;
    std::vector<size_t> order(seen.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return values[a] > values[b]; });
    std::vector<bool> kept(seen.size());
    for (size_t i = 0; i < most_trials / 2; ++i) kept[order[i]] = true;
    for (size_t i = seen.size() - most_trials / 2; i < seen.size(); ++i) kept[i] = true;
    std::vector<size_t> numbers;
    Vector figures;
    for (size_t i = 0; i < seen.size(); ++i)
      if (kept[i]) {
        numbers.push_back(seen[i]);
        figures.push_back(values[i]);
      }
    seen = std::move(numbers);
    values = std::move(figures);
  }

  // Random points and neighbours of the best; the most promising are refined by small changes.
  template <class Gain>
  static Point improve(const Trials& trials, const Request& request, const Point& best,
                       const Gain& gain, Random& random) {
    const Space& space = trials.space();
    std::vector<std::pair<double, Point>> pool;
    const auto add = [&](Point point) {
      if (request.repeats || !trials.tried(point)) pool.emplace_back(gain(point), std::move(point));
    };
    for (size_t i = 0; i < random_candidates; ++i) add(random_point(space, random));
    for (size_t i = 0; i < random_candidates / 4; ++i) add(changed(space, best, 0.1, random));
    if (pool.empty()) return best;
    std::stable_sort(pool.begin(), pool.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    pool.resize(std::min(pool.size(), starts));
    for (auto& [value, point] : pool) {
      double width = 0.2;
      for (int i = 0; i < refinements; ++i) {
        Point next = changed(space, point, width, random);
        if (!request.repeats && trials.tried(next)) continue;
        const double next_value = gain(next);
        if (next_value > value) {
          value = next_value;
          point = std::move(next);
        } else {
          width = std::max(width * 0.85, 1e-4);
        }
      }
    }
    return std::max_element(pool.begin(), pool.end(),
                            [](const auto& a, const auto& b) { return a.first < b.first; })
        ->second;
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

  size_t startup_;
  std::vector<bool> categorical_;
};

const Register<SamplerRecord> registered{{
    .name = "gp",
    .aliases = {"bayesian"},
    .summary = "Bayesian optimisation with a Gaussian process: few trials that take long",
    .schema = {{{.name = "n_startup_trials",
                 .type = FieldType::integer,
                 .default_value = 10,
                 .help = "random trials first",
                 .minimum = 2}}},
    .make = [](const Value& options, const SamplerSetup& setup) -> std::unique_ptr<Sampler> {
      return std::make_unique<GpSampler>(options, setup);
    },
}};

}  // namespace
}  // namespace mase::gp_sampler
