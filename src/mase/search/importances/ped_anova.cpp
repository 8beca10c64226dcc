// SPDX-License-Identifier: Apache-2.0
// PED-ANOVA (Watanabe, Bansal and Hutter, 2023) with Optuna 5's settings: how far the values of the
// best tenth of the trials are spread otherwise than those of all.
#include <algorithm>
#include <cmath>
#include <limits>

#include "mase/search/importances/importance.h"
#include "mase/search/models/truncated_normal.h"

namespace mase::ped_anova_importance {
namespace {

using namespace search;

constexpr int most_cells = 50;
constexpr double best_share = 0.1;

int cells_of(const Distribution& d) {
  if (d.is_categorical()) return static_cast<int>(d.count());
  if (d.log && d.step > 0) {
    const double doublings = std::ceil(std::log(d.high - d.low + 1) / std::log(2.0)) + 1;
    return std::min(static_cast<int>(doublings), most_cells);
  }
  if (d.step > 0) return std::min(static_cast<int>(d.count()), most_cells);
  return most_cells;
}

std::vector<double> counts_on_grid(const Distribution& d, const std::vector<double>& values,
                                   int cells) {
  std::vector<double> counts(static_cast<size_t>(cells), 0.0);
  const double low = d.to_line(d.low), high = d.to_line(d.high);
  for (const double value : values) {
    double index = value;
    if (!d.is_categorical())
      index = std::ceil((d.to_line(value) - low) / ((high - low) / (cells - 1)) - 0.5);
    ++counts[static_cast<size_t>(std::clamp(index, 0.0, cells - 1.0))];
  }
  return counts;
}

// Scott's rule with counts as weights, discrete on 0 ... cells-1, and a prior of weight one.
std::vector<double> density_of_numbers(const std::vector<double>& counts) {
  std::vector<double> at, weight;
  double total = 0, mean = 0;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0) {
      at.push_back(static_cast<double>(i));
      weight.push_back(counts[i]);
      total += counts[i];
      mean += counts[i] * static_cast<double>(i);
    }
  mean /= total;
  double spread = 0, sum = 0;
  size_t first = at.size(), third = at.size();
  for (size_t i = 0; i < at.size(); ++i) {
    spread += (at[i] - mean) * (at[i] - mean) * weight[i];
    sum += weight[i];
    if (first == at.size() && sum >= std::floor(total / 4)) first = i;
    if (third == at.size() && sum > std::floor(total * 3 / 4)) third = i;
  }
  spread = std::sqrt(spread / std::max(1.0, total - 1));
  const double between = at[std::min(third, at.size() - 1)] - at[std::min(first, at.size() - 1)];
  double sigma = 1.059 * std::min(between / 1.34, spread) * std::pow(total, -0.2);
  sigma = std::max(sigma, 0.5 / 1.64);
  const double low = 0, high = static_cast<double>(counts.size()) - 1;
  at.push_back((low + high) / 2);
  weight.push_back(1);
  std::vector<double> density(counts.size(), 0.0);
  for (size_t k = 0; k < at.size(); ++k) {
    const double s = k + 1 == at.size() ? high - low + 1 : sigma;
    const double all = normal_log_mass((low - 0.5 - at[k]) / s, (high + 0.5 - at[k]) / s);
    for (size_t x = 0; x < density.size(); ++x) {
      const double centre = static_cast<double>(x);
      const double mass =
          normal_log_mass((centre - 0.5 - at[k]) / s, (centre + 0.5 - at[k]) / s) - all;
      density[x] += weight[k] / (total + 1) * std::exp(mass);
    }
  }
  return density;
}

std::vector<double> density_of_choices(const std::vector<double>& counts) {
  double total = 0, kernels = 1;
  for (const double count : counts) {
    total += count;
    kernels += count > 0;
  }
  const double choices = static_cast<double>(counts.size());
  std::vector<double> density(counts.size(), 1 / (total + 1) / choices);
  for (size_t k = 0; k < counts.size(); ++k) {
    if (counts[k] == 0) continue;
    for (size_t x = 0; x < counts.size(); ++x)
      density[x] += counts[k] / (total + 1) * (1 / kernels + (x == k)) / (1 + choices / kernels);
  }
  return density;
}

double divergence(const Distribution& d, const std::vector<double>& best,
                  const std::vector<double>& all) {
  const int cells = cells_of(d);
  const auto density = [&](const std::vector<double>& values) {
    const std::vector<double> counts = counts_on_grid(d, values, cells);
    return d.is_categorical() ? density_of_choices(counts) : density_of_numbers(counts);
  };
  const std::vector<double> top = density(best), local = density(all);
  double sum = 0;
  for (size_t i = 0; i < top.size(); ++i) {
    const double base = local[i] + 1e-12, ratio = (top[i] + 1e-12) / base - 1;
    sum += base * ratio * ratio;
  }
  return sum;
}

std::vector<double> evaluate(const Space& space, const std::vector<Point>& points,
                             const std::vector<double>& losses, uint64_t) {
  std::vector<double> sorted = losses;
  const auto last =
      static_cast<size_t>(std::ceil(best_share * static_cast<double>(losses.size())) - 1);
  std::sort(sorted.begin(), sorted.end());
  const double limit = sorted[last];
  double chosen = 0;
  for (const double loss : losses) chosen += loss <= limit;
  const double quantile = chosen / static_cast<double>(losses.size());
  std::vector<double> result;
  for (size_t i = 0; i < space.dimensions(); ++i) {
    std::vector<double> best, all;
    for (size_t p = 0; p < points.size(); ++p) {
      if (std::isnan(points[p][i])) continue;
      all.push_back(points[p][i]);
      if (losses[p] <= limit) best.push_back(points[p][i]);
    }
    const Distribution& d = space.parameters()[i].distribution;
    if (d.is_single() || best.empty() || all.size() < 2) {
      result.push_back(0);
      continue;
    }
    const double of_best = static_cast<double>(best.size()) / chosen;
    const double of_all = static_cast<double>(all.size()) / static_cast<double>(points.size());
    result.push_back(of_best * of_best / of_all * divergence(d, best, all) * quantile * quantile);
  }
  return result;
}

const Register<ImportanceRecord> registered{{
    .name = "ped-anova",
    .aliases = {"ped_anova", "pedanova"},
    .summary = "how the best tenth of the trials differs from all",
    .evaluate = evaluate,
}};

}  // namespace
}  // namespace mase::ped_anova_importance
