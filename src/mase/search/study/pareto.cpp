// SPDX-License-Identifier: Apache-2.0
#include "mase/search/study/pareto.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace mase::search {
namespace {

constexpr double infinite = std::numeric_limits<double>::infinity();

std::vector<size_t> lexicographic_order(const std::vector<Losses>& points) {
  std::vector<size_t> order(points.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return points[a] < points[b]; });
  return order;
}

// Ranks of points given in lexicographic order.
void rank_ordered(const std::vector<Losses>& points, const std::vector<size_t>& order,
                  std::vector<int>& ranks) {
  // Each front is searched for a point that dominates the new one. Fronts are nested, so the first
  // that has none is found by bisection (Roy et al., "Efficient non-domination level update",
  // 2016).
  std::vector<std::vector<size_t>> fronts;
  const bool flat = !points.empty() && points.front().size() == 2;
  const auto dominated_by = [&](size_t front, size_t point) {
    const std::vector<size_t>& members = fronts[front];
    // With two objectives the last member has the front's least second value.
    if (flat) return dominates(points[members.back()], points[point]);
    return std::any_of(members.rbegin(), members.rend(),
                       [&](size_t member) { return dominates(points[member], points[point]); });
  };
  for (const size_t point : order) {
    size_t from = 0, to = fronts.size();
    while (from < to) {
      const size_t middle = (from + to) / 2;
      if (dominated_by(middle, point))
        from = middle + 1;
      else
        to = middle;
    }
    if (from == fronts.size()) fronts.emplace_back();
    fronts[from].push_back(point);
    ranks[point] = static_cast<int>(from);
  }
}

double volume_of(std::vector<Losses>& points, const Losses& reference, size_t dimensions);

// Two dimensions: a staircase.
double area(std::vector<Losses>& points, const Losses& reference) {
  std::sort(points.begin(), points.end());
  double sum = 0, height = reference[1];
  for (const Losses& point : points)
    if (point[1] < height) {
      sum += (reference[0] - point[0]) * (height - point[1]);
      height = point[1];
    }
  return sum;
}

// While et al., "A fast way of calculating exact hypervolumes" (2012): each point adds its own box
// less what the points after it, limited to that box, cover of it.
double exclusive(const Losses& point, const std::vector<Losses>& others, size_t first,
                 const Losses& reference, size_t dimensions) {
  double box = 1;
  for (size_t k = 0; k < dimensions; ++k) box *= reference[k] - point[k];
  if (first == others.size()) return box;
  std::vector<Losses> limited;
  limited.reserve(others.size() - first);
  for (size_t i = first; i < others.size(); ++i) {
    Losses inside(dimensions);
    for (size_t k = 0; k < dimensions; ++k) inside[k] = std::max(point[k], others[i][k]);
    limited.push_back(std::move(inside));
  }
  return box - volume_of(limited, reference, dimensions);
}

void keep_front(std::vector<Losses>& points) {
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
  std::vector<Losses> kept;
  for (Losses& point : points)
    if (std::none_of(kept.begin(), kept.end(),
                     [&](const Losses& other) { return dominates(other, point); }))
      kept.push_back(std::move(point));
  points = std::move(kept);
}

double volume_of(std::vector<Losses>& points, const Losses& reference, size_t dimensions) {
  if (points.empty()) return 0;
  if (dimensions == 1) {
    double best = points.front()[0];
    for (const Losses& point : points) best = std::min(best, point[0]);
    return reference[0] - best;
  }
  if (dimensions == 2) return area(points, reference);
  keep_front(points);
  double sum = 0;
  for (size_t i = 0; i < points.size(); ++i)
    sum += exclusive(points[i], points, i + 1, reference, dimensions);
  return sum;
}

std::vector<size_t> subset_of_two(const std::vector<Losses>& points,
                                  const std::vector<size_t>& unique, size_t count,
                                  const Losses& reference) {
  struct Corner {
    size_t index;
    double x, y;  // upper right corner of the box it would add
  };
  std::vector<Corner> left;
  for (const size_t index : unique) left.push_back({index, reference[0], reference[1]});
  std::vector<size_t> chosen;
  while (chosen.size() < count) {
    size_t best = 0;
    double most = -infinite;
    for (size_t i = 0; i < left.size(); ++i) {
      const Losses& point = points[left[i].index];
      const double adds = (left[i].x - point[0]) * (left[i].y - point[1]);
      if (adds > most) {
        most = adds;
        best = i;
      }
    }
    const Losses& taken = points[left[best].index];
    chosen.push_back(left[best].index);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(best));
    for (size_t i = 0; i < left.size(); ++i) {
      if (i < best)
        left[i].x = std::min(left[i].x, taken[0]);
      else
        left[i].y = std::min(left[i].y, taken[1]);
    }
  }
  return chosen;
}

std::vector<size_t> subset_of_many(const std::vector<Losses>& points,
                                   const std::vector<size_t>& unique, size_t count,
                                   const Losses& reference) {
  const size_t dimensions = reference.size();
  std::vector<size_t> left = unique, chosen;
  std::vector<Losses> covered;
  std::vector<double> gains;
  for (const size_t index : left)
    gains.push_back(exclusive(points[index], {}, 0, reference, dimensions));
  while (true) {
    const auto most = std::max_element(gains.begin(), gains.end());
    const auto at = most - gains.begin();
    chosen.push_back(left[static_cast<size_t>(at)]);
    covered.push_back(points[chosen.back()]);
    left.erase(left.begin() + at);
    gains.erase(gains.begin() + at);
    if (chosen.size() == count) return chosen;
    // Gains only shrink, so one that was smaller than a fresh one already need not be computed.
    std::vector<size_t> order(left.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return gains[a] > gains[b]; });
    double best = 0;
    for (const size_t i : order) {
      if (gains[i] < best) continue;
      gains[i] = exclusive(points[left[i]], covered, 0, reference, dimensions);
      best = std::max(best, gains[i]);
    }
  }
}

}  // namespace

bool dominates(const Losses& a, const Losses& b) {
  bool better = false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i] > b[i]) return false;
    better = better || a[i] < b[i];
  }
  return better;
}

std::vector<int> domination_ranks(const std::vector<Losses>& points,
                                  const std::vector<double>& penalties) {
  std::vector<int> ranks(points.size(), -1);
  std::vector<size_t> order = lexicographic_order(points);
  if (penalties.empty()) {
    rank_ordered(points, order, ranks);
    return ranks;
  }
  std::vector<size_t> feasible, unknown;
  std::vector<double> levels;
  for (const size_t i : order) {
    if (penalties[i] <= 0) feasible.push_back(i);
    if (std::isnan(penalties[i])) unknown.push_back(i);
    if (penalties[i] > 0) levels.push_back(penalties[i]);
  }
  rank_ordered(points, feasible, ranks);
  int next = ranks.empty() ? 0 : *std::max_element(ranks.begin(), ranks.end()) + 1;
  std::sort(levels.begin(), levels.end());
  levels.erase(std::unique(levels.begin(), levels.end()), levels.end());
  for (size_t i = 0; i < points.size(); ++i)
    if (penalties[i] > 0)
      ranks[i] =
          next + static_cast<int>(std::lower_bound(levels.begin(), levels.end(), penalties[i]) -
                                  levels.begin());
  next += static_cast<int>(levels.size());
  std::vector<int> last(points.size(), 0);
  rank_ordered(points, unknown, last);
  for (const size_t i : unknown) ranks[i] = next + last[i];
  return ranks;
}

std::vector<size_t> pareto_front(const std::vector<Losses>& points) {
  const std::vector<int> ranks = domination_ranks(points);
  std::vector<size_t> front;
  for (size_t i = 0; i < points.size(); ++i)
    if (ranks[i] == 0) front.push_back(i);
  return front;
}

double hypervolume(std::vector<Losses> points, const Losses& reference) {
  const auto beyond = [&](const Losses& point) {
    for (size_t k = 0; k < reference.size(); ++k)
      if (!(point[k] < reference[k])) return true;
    return false;
  };
  points.erase(std::remove_if(points.begin(), points.end(), beyond), points.end());
  if (points.empty()) return 0;
  for (const Losses& point : points)
    if (std::any_of(point.begin(), point.end(), [](double x) { return std::isinf(x); }))
      return infinite;
  return volume_of(points, reference, reference.size());
}

Losses reference_point(const std::vector<Losses>& points) {
  Losses reference = points.front();
  for (const Losses& point : points)
    for (size_t k = 0; k < point.size(); ++k) reference[k] = std::max(reference[k], point[k]);
  for (double& worst : reference) {
    worst = std::max(1.1 * worst, 0.9 * worst);
    if (worst == 0) worst = 1e-12;
  }
  return reference;
}

std::vector<size_t> hypervolume_subset(const std::vector<Losses>& points, size_t count,
                                       const Losses& reference) {
  std::vector<size_t> all(points.size());
  std::iota(all.begin(), all.end(), size_t{0});
  if (count >= points.size()) return all;
  // Equal points count once; the others fill up at the end.
  std::vector<size_t> order = lexicographic_order(points), unique;
  for (const size_t i : order)
    if (unique.empty() || points[unique.back()] != points[i]) unique.push_back(i);
  if (unique.size() < count) {
    std::vector<bool> taken(points.size());
    for (const size_t i : unique) taken[i] = true;
    size_t missing = count - unique.size();
    std::vector<size_t> chosen;
    for (size_t i = 0; i < points.size(); ++i)
      if (taken[i] || (missing > 0 && missing--)) chosen.push_back(i);
    return chosen;
  }
  if (unique.size() == count) return unique;
  if (std::any_of(reference.begin(), reference.end(), [](double x) { return !std::isfinite(x); }))
    return {unique.begin(), unique.begin() + static_cast<std::ptrdiff_t>(count)};
  return reference.size() == 2 ? subset_of_two(points, unique, count, reference)
                               : subset_of_many(points, unique, count, reference);
}

std::vector<double> crowding_distances(const std::vector<Losses>& points,
                                       std::vector<size_t>* loneliest_first) {
  const size_t n = points.size();
  std::vector<double> distances(n, 0.0);
  if (n == 0) return distances;
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  for (size_t k = 0; k < points.front().size(); ++k) {
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return points[a][k] < points[b][k]; });
    double low = infinite, high = -infinite;
    for (const Losses& point : points)
      if (std::isfinite(point[k])) {
        low = std::min(low, point[k]);
        high = std::max(high, point[k]);
      }
    if (points[order.front()][k] == points[order.back()][k]) continue;
    const double width = high > low ? high - low : 1;
    for (size_t i = 0; i < n; ++i) {
      const double left = i > 0 ? points[order[i - 1]][k] : -infinite;
      const double right = i + 1 < n ? points[order[i + 1]][k] : infinite;
      // Between two equal infinities there is no gap.
      distances[order[i]] += left == right ? 0 : (right - left) / width;
    }
  }
  if (loneliest_first) {
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return distances[a] < distances[b]; });
    loneliest_first->assign(order.rbegin(), order.rend());
  }
  return distances;
}

}  // namespace mase::search
