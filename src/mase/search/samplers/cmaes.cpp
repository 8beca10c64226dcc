// SPDX-License-Identifier: Apache-2.0
// CMA-ES over the numeric parameters, scaled to [0, 1]; choices are drawn at random. A generation
// is finished once its first trials are, in the order of their numbers; its state is computed from
// the history again when a search resumes.
#include <algorithm>
#include <cmath>

#include "mase/search/models/cma.h"
#include "mase/search/samplers/sampler.h"

namespace mase::cmaes_sampler {
namespace {

using namespace search;

constexpr const char* attribute = "cma:generation";

class CmaSampler final : public Sampler {
 public:
  CmaSampler(const Value& options, const SamplerSetup& setup)
      : startup_(options["n_startup_trials"].as_int()) {
    for (size_t i = 0; i < setup.space->dimensions(); ++i) {
      const Parameter& parameter = setup.space->parameters()[i];
      if (parameter.distribution.is_categorical() || parameter.distribution.is_single() ||
          parameter.parent >= 0)
        continue;
      numeric_.push_back(i);
      const Distribution& d = parameter.distribution;
      // Half a step of a discrete parameter: what it takes to move.
      least_.push_back(d.step > 0 && !d.log ? 0.5 * d.step / (d.line_high() - d.line_low()) : 0);
    }
    const double sigma = options["sigma0"].is_number() ? options["sigma0"].as_double() : 1.0 / 6;
    const auto population = options["popsize"].is_int() ? options["popsize"].as_int() : 0;
    cma_ = std::make_unique<Cma>(std::vector<double>(numeric_.size(), 0.5), sigma,
                                 static_cast<size_t>(population));
  }

  Suggestion suggest(const Trials& trials, const Request& request) override {
    const Space& space = trials.space();
    Random random(request.seed, "search cmaes", static_cast<uint64_t>(request.number));
    if (request.number < startup_)
      return {first_untried(trials, request, random, [&] { return random_point(space, random); })};
    absorb(trials, request.visible);
    const auto draw = [&] {
      Point point = random_point(space, random);
      const std::vector<double> x = inside(random);
      for (size_t k = 0; k < numeric_.size(); ++k) {
        const Distribution& d = space.parameters()[numeric_[k]].distribution;
        point[numeric_[k]] = d.from_line(d.line_low() + x[k] * (d.line_high() - d.line_low()));
      }
      return point;
    };
    return {first_untried(trials, request, random, draw), Dict{{attribute, generation_}}};
  }

 private:
  std::vector<double> inside(Random& random) const {
    std::vector<double> x;
    for (size_t attempt = 0; attempt < 10 * numeric_.size(); ++attempt) {
      x = cma_->sample(random);
      if (std::all_of(x.begin(), x.end(), [](double u) { return u >= 0 && u <= 1; })) return x;
    }
    for (double& u : x) u = std::clamp(u, 0.0, 1.0);
    return x;
  }

  // What belongs to the running generation and can be seen; full generations are told to the
  // strategy in order, so its state depends on the history alone.
  void absorb(const Trials& trials, size_t visible) {
    while (true) {
      std::vector<std::pair<std::vector<double>, double>> solutions;
      size_t earliest = first_;
      for (size_t number = first_; number < std::min(visible, trials.size()); ++number) {
        const Trial& trial = trials[number];
        const Value* mark = trial.system_attributes.find(attribute);
        if (trial.state != TrialState::complete || !trial.in_space || !mark ||
            !(*mark == Value(generation_)))
          continue;
        if (solutions.empty()) earliest = number;
        std::vector<double> x;
        for (const size_t i : numeric_) {
          const Distribution& d = trials.space().parameters()[i].distribution;
          x.push_back((d.to_line(trial.point[i]) - d.line_low()) / (d.line_high() - d.line_low()));
        }
        solutions.emplace_back(std::move(x), trials.loss(trial));
        if (solutions.size() == cma_->population()) break;
      }
      if (solutions.size() < cma_->population()) return;
      cma_->tell(std::move(solutions));
      cma_->keep_deviations(least_);
      ++generation_;
      first_ = earliest;  // later generations began later
    }
  }

  int64_t startup_;
  std::vector<size_t> numeric_;
  std::vector<double> least_;
  std::unique_ptr<Cma> cma_;
  int64_t generation_ = 0;
  size_t first_ = 0;
};

const Register<SamplerRecord> registered{{
    .name = "cmaes",
    .aliases = {"cma-es", "cma"},
    .summary = "covariance matrix adaptation: one objective, numeric parameters",
    .schema = {{{.name = "n_startup_trials",
                 .type = FieldType::integer,
                 .default_value = 1,
                 .help = "random trials first",
                 .minimum = 0},
                {.name = "sigma0",
                 .type = FieldType::number,
                 .help = "deviation at the start, of a range of one (default: a sixth)",
                 .minimum = 1e-9},
                {.name = "popsize",
                 .type = FieldType::integer,
                 .help = "trials of a generation (default: from the number of parameters)",
                 .minimum = 4}}},
    .refuses = [](const SamplerSetup& setup) -> std::optional<std::string> {
      if (setup.objectives > 1) return "CMA-ES has one objective";
      size_t numeric = 0;
      for (const Parameter& parameter : setup.space->parameters())
        numeric += !parameter.distribution.is_categorical() &&
                   !parameter.distribution.is_single() && parameter.parent < 0;
      if (numeric < 2) return "CMA-ES needs at least two numeric parameters";
      return {};
    },
    .make = [](const Value& options, const SamplerSetup& setup) -> std::unique_ptr<Sampler> {
      return std::make_unique<CmaSampler>(options, setup);
    },
}};

}  // namespace
}  // namespace mase::cmaes_sampler
