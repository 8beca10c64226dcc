// SPDX-License-Identifier: Apache-2.0
// What the genetic samplers share: generations, parents, children. They differ in who survives
// when the last rank does not fit: the lonely ones (NSGA-II) or those near reference lines
// (NSGA-III).
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "mase/search/crossovers/crossover.h"
#include "mase/search/samplers/sampler.h"
#include "mase/search/study/pareto.h"

namespace mase::search {

// `room` of the members of `rank` (indices into losses); `elite` were taken before.
using Survival = std::function<std::vector<size_t>(
    const std::vector<Losses>& losses, const std::vector<size_t>& elite,
    const std::vector<size_t>& rank, size_t room, Random& random)>;

// The `count` fittest of all: whole ranks while they fit, then `survival`.
std::vector<size_t> fittest(const std::vector<Losses>& losses, const std::vector<double>& penalties,
                            size_t count, const Survival& survival, Random& random);

std::vector<size_t> survive_by_crowding(const std::vector<Losses>& losses,
                                        const std::vector<size_t>& elite,
                                        const std::vector<size_t>& rank, size_t room,
                                        Random& random);

// NSGA-III (Deb and Jain, 2014): reference points on a lattice of `divisions` steps, objectives
// scaled to the extreme points, and the nearest line of each.
struct Niches {
  std::vector<size_t> closest;
  std::vector<double> distance;
};
std::vector<Losses> lattice_points(size_t objectives, int divisions);
std::vector<Losses> normalised_losses(std::vector<Losses> losses);
Niches niches_of(const std::vector<Losses>& normalised, const std::vector<Losses>& lattice);
Survival survive_by_niche(int divisions);

Schema genetic_schema();
std::unique_ptr<Sampler> make_genetic(const Value& options, const SamplerSetup& setup,
                                      const std::string& attribute, Survival survival);

}  // namespace mase::search
