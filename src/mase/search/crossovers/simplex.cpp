// SPDX-License-Identifier: Apache-2.0
// Crossovers of three parents: simplex (Tsutsui et al., 1999) and unimodal normal (Ono and
// Kobayashi, 1997).
#include <algorithm>
#include <cmath>

#include "mase/search/crossovers/crossover.h"

namespace mase::simplex_crossover {
namespace {

using namespace search;
using Numbers = std::vector<double>;

Numbers simplex(const CrossoverInput& input) {
  const size_t n = input.bounds.size(), parents = input.parents.size();
  Numbers centre(n, 0.0), shares;
  for (size_t i = 0; i < n; ++i) {
    for (const Numbers& parent : input.parents) centre[i] += parent[i];
    centre[i] /= static_cast<double>(parents);
  }
  for (size_t k = 1; k < parents; ++k)
    shares.push_back(std::pow(input.uniform(), 1 / static_cast<double>(k)));
  const double grown = std::sqrt(static_cast<double>(n) + 2);
  const auto vertex = [&](size_t k, size_t i) {
    return centre[i] + grown * (input.parents[k][i] - centre[i]);
  };
  Numbers child;
  for (size_t i = 0; i < n; ++i) {
    double offset = 0;
    for (size_t k = 1; k < parents; ++k)
      offset = shares[k - 1] * (vertex(k - 1, i) - vertex(k, i) + offset);
    child.push_back(vertex(parents - 1, i) + offset);
  }
  return child;
}

double dot(const Numbers& a, const Numbers& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

// Along the line of the first two parents, and across it as far as the third lies away. The
// directions across it are those of a normal vector with its part along the line removed.
Numbers unimodal(const CrossoverInput& input) {
  const size_t n = input.bounds.size();
  constexpr double along = 0.5 * 0.5;
  const double across = 0.35 * 0.35 / static_cast<double>(n);
  Numbers line(n), third(n), noise(n);
  for (size_t i = 0; i < n; ++i) {
    line[i] = input.parents[1][i] - input.parents[0][i];
    third[i] = input.parents[2][i] - input.parents[0][i];
    noise[i] = across * input.normal();
  }
  const double length = std::max(std::sqrt(dot(line, line)), 1e-10);
  const double shift = along * input.normal();
  Numbers unit(n);
  for (size_t i = 0; i < n; ++i) unit[i] = line[i] / length;
  const double part = dot(third, unit), along_noise = dot(noise, unit);
  for (size_t i = 0; i < n; ++i) {
    third[i] -= part * unit[i];
    noise[i] -= along_noise * unit[i];
  }
  const double distance = n > 1 ? std::sqrt(dot(third, third)) : 0;
  Numbers child;
  for (size_t i = 0; i < n; ++i)
    child.push_back((input.parents[0][i] + input.parents[1][i]) / 2 - shift * line[i] +
                    distance * noise[i]);
  return child;
}

const Register<CrossoverRecord> registered{{
    .name = "spx",
    .summary = "evenly inside a simplex around three parents",
    .parents = 3,
    .cross = simplex,
}};

const Register<CrossoverRecord> undx{{
    .name = "undx",
    .summary = "normal around the middle of two parents, as wide as the third is away",
    .parents = 3,
    .cross = unimodal,
}};

}  // namespace
}  // namespace mase::simplex_crossover
