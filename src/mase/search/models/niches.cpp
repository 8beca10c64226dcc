// SPDX-License-Identifier: Apache-2.0
// NSGA-III's niches (Deb and Jain, 2014), as Optuna computes them.
#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <limits>

#include "mase/search/models/genetic.h"

namespace mase::search {
namespace {

void add_multisets(size_t objectives, int left, size_t from, Losses& counts,
                   std::vector<Losses>& points) {
  if (left == 0) {
    points.push_back(counts);
    return;
  }
  for (size_t k = from; k < objectives; ++k) {
    ++counts[k];
    add_multisets(objectives, left - 1, k, counts, points);
    --counts[k];
  }
}

// Infinities become three ranges beyond the finite values.
void limit(std::vector<Losses>& losses) {
  for (size_t k = 0; k < losses.front().size(); ++k) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const Losses& point : losses)
      if (std::isfinite(point[k])) {
        low = std::min(low, point[k]);
        high = std::max(high, point[k]);
      }
    if (high < low) low = high = 0;
    const double margin = 3 * (high - low);
    for (Losses& point : losses) point[k] = std::clamp(point[k], low - margin, high + margin);
  }
}

}  // namespace

std::vector<Losses> lattice_points(size_t objectives, int divisions) {
  std::vector<Losses> points;
  Losses counts(objectives, 0.0);
  add_multisets(objectives, divisions, 0, counts, points);
  return points;
}

std::vector<Losses> normalised_losses(std::vector<Losses> losses) {
  limit(losses);
  const size_t m = losses.front().size();
  for (size_t k = 0; k < m; ++k) {
    double ideal = losses.front()[k];
    for (const Losses& point : losses) ideal = std::min(ideal, point[k]);
    for (Losses& point : losses) point[k] -= ideal;
  }
  const auto size = static_cast<Eigen::Index>(m);
  Eigen::MatrixXd extremes(size, size);
  for (size_t axis = 0; axis < m; ++axis) {
    size_t best = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t i = 0; i < losses.size(); ++i) {
      double most = -std::numeric_limits<double>::infinity();
      for (size_t k = 0; k < m; ++k) most = std::max(most, losses[i][k] * (k == axis ? 1 : 1e6));
      if (most < least) {
        least = most;
        best = i;
      }
    }
    for (size_t k = 0; k < m; ++k)
      extremes(static_cast<Eigen::Index>(axis), static_cast<Eigen::Index>(k)) = losses[best][k];
  }
  std::vector<double> factors(m);
  const Eigen::FullPivLU<Eigen::MatrixXd> solver(extremes);
  if (solver.rank() == size) {
    const Eigen::VectorXd inverse = solver.solve(Eigen::VectorXd::Ones(size));
    for (size_t k = 0; k < m; ++k) factors[k] = inverse(static_cast<Eigen::Index>(k));
  } else {
    for (size_t k = 0; k < m; ++k) {
      double most = 0;
      for (const Losses& point : losses) most = std::max(most, point[k]);
      factors[k] = most == 0 ? 1 : 1 / most;
    }
  }
  for (Losses& point : losses)
    for (size_t k = 0; k < m; ++k) point[k] *= std::isfinite(factors[k]) ? factors[k] : 1;
  return losses;
}

Niches niches_of(const std::vector<Losses>& normalised, const std::vector<Losses>& lattice) {
  Niches niches;
  for (const Losses& point : normalised) {
    size_t closest = 0;
    double least = std::numeric_limits<double>::infinity();
    for (size_t p = 0; p < lattice.size(); ++p) {
      double along = 0, squared = 0, distance = 0;
      for (size_t k = 0; k < point.size(); ++k) {
        along += point[k] * lattice[p][k];
        squared += lattice[p][k] * lattice[p][k];
      }
      for (size_t k = 0; k < point.size(); ++k) {
        const double off = point[k] - along / squared * lattice[p][k];
        distance += off * off;
      }
      distance = std::sqrt(distance);
      if (distance < least) {
        least = distance;
        closest = p;
      }
    }
    niches.closest.push_back(closest);
    niches.distance.push_back(least);
  }
  return niches;
}

Survival survive_by_niche(int divisions) {
  return [divisions](const std::vector<Losses>& losses, const std::vector<size_t>& elite,
                     const std::vector<size_t>& rank, size_t room, Random& random) {
    std::vector<Losses> all;
    for (const size_t i : elite) all.push_back(losses[i]);
    for (const size_t i : rank) all.push_back(losses[i]);
    const std::vector<Losses> lattice = lattice_points(losses.front().size(), divisions);
    const Niches niches = niches_of(normalised_losses(std::move(all)), lattice);
    // Per reference point how many were taken, and who is left, the nearest last.
    std::vector<size_t> taken(lattice.size(), 0);
    std::vector<std::vector<size_t>> left(lattice.size());
    for (size_t i = 0; i < elite.size(); ++i) ++taken[niches.closest[i]];
    for (size_t i = 0; i < rank.size(); ++i) left[niches.closest[elite.size() + i]].push_back(i);
    for (std::vector<size_t>& members : left)
      std::stable_sort(members.begin(), members.end(), [&](size_t a, size_t b) {
        return niches.distance[elite.size() + a] > niches.distance[elite.size() + b];
      });
    std::vector<size_t> chosen;
    while (chosen.size() < room) {
      size_t fewest = static_cast<size_t>(-1);
      for (size_t p = 0; p < lattice.size(); ++p)
        if (!left[p].empty()) fewest = std::min(fewest, taken[p]);
      std::vector<size_t> open;
      for (size_t p = 0; p < lattice.size(); ++p)
        if (!left[p].empty() && taken[p] == fewest) open.push_back(p);
      const size_t p = open[random.below(open.size())];
      // The nearest to an empty niche, any of the others elsewhere.
      const size_t at = taken[p] == 0 ? left[p].size() - 1 : random.below(left[p].size());
      chosen.push_back(rank[left[p][at]]);
      left[p].erase(left[p].begin() + static_cast<std::ptrdiff_t>(at));
      ++taken[p];
    }
    return chosen;
  };
}

}  // namespace mase::search
