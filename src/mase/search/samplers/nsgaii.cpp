// SPDX-License-Identifier: Apache-2.0
// NSGA-II (Deb et al., 2002).
#include "mase/search/models/genetic.h"

namespace mase::nsgaii_sampler {
namespace {

using namespace search;

const Register<SamplerRecord> registered{{
    .name = "nsgaii",
    .aliases = {"nsga-ii", "nsga2"},
    .summary = "genetic, for several objectives: lonely points of the last rank survive",
    .schema = genetic_schema(),
    .make =
        [](const Value& options, const SamplerSetup& setup) {
          return make_genetic(options, setup, "NSGAIISampler:generation", survive_by_crowding);
        },
}};

}  // namespace
}  // namespace mase::nsgaii_sampler
