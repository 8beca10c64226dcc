// SPDX-License-Identifier: Apache-2.0
// Quasi-Monte Carlo: Sobol's or Halton's sequence instead of random numbers.
#include <algorithm>
#include <cmath>
#include <limits>

#include "mase/search/models/low_discrepancy.h"
#include "mase/search/samplers/sampler.h"

namespace mase::qmc_sampler {
namespace {

using namespace search;

class QmcSampler final : public Sampler {
 public:
  QmcSampler(const Value& options, const SamplerSetup& setup)
      : halton_(options["qmc_type"].as_string() == "halton"),
        scramble_(options["scramble"].as_bool()),
        sobol_(halton_ ? 0 : setup.space->dimensions()) {}

  Suggestion suggest(const Trials& trials, const Request& request) override {
    const Space& space = trials.space();
    Random random(request.seed, "search qmc", static_cast<uint64_t>(request.number));
    Point point(space.dimensions(), std::numeric_limits<double>::quiet_NaN());
    // The sequence begins in the corner of the space: as with Optuna the first trial is random.
    if (request.number > 0) {
      const auto index = static_cast<uint64_t>(request.number - 1);
      std::vector<double> u =
          halton_ ? halton_point(index, point.size()) : sobol_.point(index & 0x3fffffff);
      if (scramble_) {
        Random shift(request.seed, "search qmc shift");
        for (double& x : u) x = std::fmod(x + shift.uniform(), 1.0);
      }
      for (size_t i = 0; i < point.size(); ++i) {
        const Distribution& d = space.parameters()[i].distribution;
        if (!space.exists(i, point)) continue;
        point[i] = d.is_categorical()
                       ? std::min(std::floor(u[i] * d.count()), d.count() - 1)
                       : d.from_line(d.line_low() + u[i] * (d.line_high() - d.line_low()));
      }
    }
    complete_point(space, point, random);
    return {untried(trials, request, std::move(point), random)};
  }

 private:
  bool halton_, scramble_;
  Sobol sobol_;
};

const Register<SamplerRecord> registered{{
    .name = "qmc",
    .summary = "a sequence that covers the space evenly",
    .schema = {{{.name = "qmc_type",
                 .type = FieldType::text,
                 .default_value = "sobol",
                 .help = "whose sequence",
                 .choices = {"sobol", "halton"}},
                {.name = "scramble",
                 .type = FieldType::boolean,
                 .default_value = false,
                 .help = "shift it by the seed"}}},
    .independent = true,
    .refuses = [](const SamplerSetup& setup) -> std::optional<std::string> {
      if (setup.space->dimensions() <= sobol_dimensions) return {};
      return fmt::format("the space has {} parameters, Sobol's sequence here at most {}",
                         setup.space->dimensions(), sobol_dimensions);
    },
    .make = [](const Value& options, const SamplerSetup& setup) -> std::unique_ptr<Sampler> {
      return std::make_unique<QmcSampler>(options, setup);
    },
}};

}  // namespace
}  // namespace mase::qmc_sampler
