// SPDX-License-Identifier: Apache-2.0
// Simulated binary crossover (Deb and Agrawal, 1995; bounds as in NSGA-II's own code) and its
// variant that also searches outside of the parents' box (Ballester and Carter, 2004).
#include <algorithm>
#include <cmath>

#include "mase/search/crossovers/crossover.h"

namespace mase::simulated_binary_crossover {
namespace {

using namespace search;
using Numbers = std::vector<double>;

double eta_of(const CrossoverInput& input) { return input.several_objectives ? 20.0 : 2.0; }

Numbers uniforms(const CrossoverInput& input) {
  Numbers drawn;
  for (size_t i = 0; i < input.bounds.size(); ++i) drawn.push_back(input.uniform());
  return drawn;
}

// One of two children that took numbers of the crossing or of the parents, and perhaps swapped.
Numbers choose(const CrossoverInput& input, const Numbers& first, const Numbers& second) {
  Numbers one, other;
  for (size_t i = 0; i < input.bounds.size(); ++i) {
    const bool crossed = input.uniform() < 0.5;
    const bool swapped = input.uniform() < 0.5;
    const double a = crossed ? first[i] : input.parents[0][i];
    const double b = crossed ? second[i] : input.parents[1][i];
    one.push_back(swapped ? b : a);
    other.push_back(swapped ? a : b);
  }
  return input.uniform() < 0.5 ? one : other;
}

double spread(double u, double alpha, double eta) {
  return std::pow(u > 1 / alpha ? 1 / (2 - u * alpha) : u * alpha, 1 / (eta + 1));
}

Numbers bounded(const CrossoverInput& input) {
  const double eta = eta_of(input);
  const Numbers us = uniforms(input);
  Numbers first, second;
  for (size_t i = 0; i < us.size(); ++i) {
    const auto [low, high] = std::minmax(input.parents[0][i], input.parents[1][i]);
    const double width = std::max(high - low, 1e-10);
    const double left = 1 + 2 * (low - input.bounds[i].first) / width;
    const double right = 1 + 2 * (input.bounds[i].second - high) / width;
    const double q1 = spread(us[i], 2 - std::pow(left, -(eta + 1)), eta);
    const double q2 = spread(us[i], 2 - std::pow(right, -(eta + 1)), eta);
    first.push_back(0.5 * (low + high - q1 * width));
    second.push_back(0.5 * (low + high + q2 * width));
  }
  return choose(input, first, second);
}

Numbers varied(const CrossoverInput& input) {
  const double eta = eta_of(input);
  const Numbers us = uniforms(input);
  const bool near_first = input.uniform() <= 0.5, beyond_first = input.uniform() <= 0.5;
  Numbers first, second;
  for (size_t i = 0; i < us.size(); ++i) {
    const double b1 = std::pow(1 / std::max(2 * us[i], 1e-10), 1 / (eta + 1));
    const double b2 = std::pow(1 / std::max(2 * (1 - us[i]), 1e-10), 1 / (eta + 1));
    const double x = input.parents[0][i], y = input.parents[1][i];
    first.push_back(near_first ? 0.5 * ((1 + b1) * x + (1 - b2) * y)
                               : 0.5 * ((1 - b1) * x + (1 + b2) * y));
    second.push_back(beyond_first ? 0.5 * ((3 - b1) * x - (1 - b2) * y)
                                  : 0.5 * (-(1 - b1) * x + (3 - b2) * y));
  }
  return choose(input, first, second);
}

const Register<CrossoverRecord> registered{{
    .name = "sbx",
    .summary = "simulated binary: near the parents, inside the bounds",
    .cross = bounded,
}};

const Register<CrossoverRecord> vsbx{{
    .name = "vsbx",
    .summary = "simulated binary, also outside of the parents' box",
    .cross = varied,
}};

}  // namespace
}  // namespace mase::simulated_binary_crossover
