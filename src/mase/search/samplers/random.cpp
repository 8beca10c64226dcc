// SPDX-License-Identifier: Apache-2.0
// Random search (Bergstra and Bengio, 2012).
#include "mase/search/samplers/sampler.h"

namespace mase::random_sampler {
namespace {

using namespace search;

class RandomSampler final : public Sampler {
 public:
  Suggestion suggest(const Trials& trials, const Request& request) override {
    Random random(request.seed, "search random", static_cast<uint64_t>(request.number));
    return {first_untried(trials, request, random,
                          [&] { return random_point(trials.space(), random); })};
  }
};

const Register<SamplerRecord> registered{{
    .name = "random",
    .summary = "evenly over the space",
    .independent = true,
    .make = [](const Value&, const SamplerSetup&) { return std::make_unique<RandomSampler>(); },
}};

}  // namespace
}  // namespace mase::random_sampler
