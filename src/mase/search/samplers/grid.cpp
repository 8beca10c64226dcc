// SPDX-License-Identifier: Apache-2.0
// Every configuration once, in an order that the seed draws: a search that is stopped has seen
// something of everything.
#include <algorithm>
#include <bit>
#include <cmath>

#include "mase/search/samplers/sampler.h"

namespace mase::grid_sampler {
namespace {

using namespace search;

std::optional<std::string> refuses(const SamplerSetup& setup) {
  for (const Parameter& parameter : setup.space->parameters())
    if (!parameter.distribution.is_discrete() && !parameter.distribution.is_single())
      return fmt::format("parameter '{}' is continuous: it has no list of values", parameter.name);
  if (setup.space->size() > 0x1p53) return "the space has more configurations than can be counted";
  return {};
}

// A random order of 0 ... size-1 that needs no memory: a Feistel network over the next even power
// of two, walked until the result is inside.
double shuffled(double index, double size, uint64_t seed) {
  const auto count = static_cast<uint64_t>(size);
  if (count < 2) return index;
  const int half = (std::bit_width(count - 1) + 1) / 2;
  const uint64_t mask = (uint64_t{1} << half) - 1;
  auto value = static_cast<uint64_t>(index);
  do {
    uint64_t left = value >> half, right = value & mask;
    for (uint32_t round = 0; round < 6; ++round) {
      const auto words = philox(
          {static_cast<uint32_t>(right), static_cast<uint32_t>(right >> 32), round, 0x67726964},
          {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)});
      const uint64_t mixed = (uint64_t{words[1]} << 32 | words[0]) & mask;
      const uint64_t next = left ^ mixed;
      left = right;
      right = next;
    }
    value = left << half | right;
  } while (value >= count);
  return static_cast<double>(value);
}

// Groups of so many that follow each other stay together, in their own order: what they share is
// computed once.
class GridSampler final : public Sampler {
 public:
  explicit GridSampler(int64_t together)
      : together_(static_cast<double>(std::max<int64_t>(1, together))) {}

  Suggestion suggest(const Trials& trials, const Request& request) override {
    const double size = trials.space().size();
    const double index = std::fmod(static_cast<double>(request.number), size);
    Point point = trials.space().nth(place(index, size, request.seed));
    // Trials that others made shift the count: then the next one that is left is taken.
    for (double i = 1; i < size && !request.repeats && trials.tried(point); ++i)
      point = trials.space().nth(place(std::fmod(index + i, size), size, request.seed));
    return {std::move(point)};
  }

 private:
  double place(double index, double size, uint64_t seed) const {
    const double groups = std::floor(size / together_), group = std::floor(index / together_);
    if (group >= groups) return index;  // of a last group that is not whole
    return shuffled(group, groups, seed) * together_ + std::fmod(index, together_);
  }

  double together_;
};

const Register<SamplerRecord> grid{{
    .name = "grid",
    .summary = "every configuration once, in a random order",
    .independent = true,
    .exhaustive = true,
    .refuses = refuses,
    .make = [](const Value&, const SamplerSetup&) { return std::make_unique<GridSampler>(1); },
}};

std::unique_ptr<Sampler> make_brute_force(const Value&, const SamplerSetup& setup) {
  const bool all = setup.trials < 0 || static_cast<double>(setup.trials) >= setup.space->size();
  return std::make_unique<GridSampler>(all ? setup.together : 1);
}

const Register<SamplerRecord> registered{{
    .name = "brute-force",
    .aliases = {"bruteforce", "brute_force", "brute", "exhaustive"},
    .summary = "every configuration once, in a random order",
    .help = "Where configurations that differ in the last layer alone are measured together, these "
            "follow each other.",
    .independent = true,
    .exhaustive = true,
    .refuses = refuses,
    .make = make_brute_force,
}};

}  // namespace
}  // namespace mase::grid_sampler
