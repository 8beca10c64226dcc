// SPDX-License-Identifier: Apache-2.0
// NSGA-III (Deb and Jain, 2014).
#include "mase/search/models/genetic.h"

namespace mase::nsgaiii_sampler {
namespace {

using namespace search;

Schema schema() {
  Schema all = genetic_schema();
  all.fields.push_back({.name = "dividing_parameter",
                        .type = FieldType::integer,
                        .default_value = 3,
                        .help = "steps of the lattice of reference points",
                        .minimum = 1,
                        .maximum = 20});
  return all;
}

const Register<SamplerRecord> registered{{
    .name = "nsgaiii",
    .aliases = {"nsga-iii", "nsga3"},
    .summary = "genetic, for many objectives: points near reference lines survive",
    .schema = schema(),
    .make =
        [](const Value& options, const SamplerSetup& setup) {
          const auto divisions = static_cast<int>(options["dividing_parameter"].as_int());
          return make_genetic(options, setup, "NSGAIIISampler:generation",
                              survive_by_niche(divisions));
        },
}};

}  // namespace
}  // namespace mase::nsgaiii_sampler
