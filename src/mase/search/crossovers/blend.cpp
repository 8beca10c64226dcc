// SPDX-License-Identifier: Apache-2.0
// Crossovers that look at one number at a time: uniform (Syswerda, 1989) and BLX-alpha (Eshelman
// and Schaffer, 1993); and the mutation that goes with them.
#include <algorithm>
#include <cmath>

#include "mase/search/crossovers/crossover.h"

namespace mase::search {

double polynomial_mutation(double u, double x, double low, double high, double eta) {
  const double width = high - low;
  if (width <= 0) return x;
  const double power = 1 / (eta + 1);
  if (u <= 0.5) {
    const double away = 1 - (x - low) / width;
    return x + width * (std::pow(2 * u + (1 - 2 * u) * std::pow(away, eta + 1), power) - 1);
  }
  const double away = 1 - (high - x) / width;
  return x + width * (1 - std::pow(2 * (1 - u) + 2 * (u - 0.5) * std::pow(away, eta + 1), power));
}

}  // namespace mase::search

namespace mase::blend_crossover {
namespace {

using namespace search;

std::vector<double> uniform(const CrossoverInput& input) {
  std::vector<double> child;
  for (size_t i = 0; i < input.bounds.size(); ++i)
    child.push_back(input.parents[input.uniform() < 0.5 ? 0 : 1][i]);
  return child;
}

std::vector<double> blend(const CrossoverInput& input) {
  constexpr double alpha = 0.5;
  std::vector<double> child;
  for (size_t i = 0; i < input.bounds.size(); ++i) {
    const auto [low, high] = std::minmax(input.parents[0][i], input.parents[1][i]);
    const double beyond = alpha * (high - low);
    child.push_back(low - beyond + input.uniform() * (high - low + 2 * beyond));
  }
  return child;
}

const Register<CrossoverRecord> registered{{
    .name = "uniform",
    .summary = "each number from one parent or the other",
    .cross = uniform,
}};

const Register<CrossoverRecord> blxalpha{{
    .name = "blxalpha",
    .aliases = {"blx-alpha", "blx"},
    .summary = "evenly between the parents and half as far beyond",
    .cross = blend,
}};

}  // namespace
}  // namespace mase::blend_crossover
