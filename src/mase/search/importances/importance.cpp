// SPDX-License-Identifier: Apache-2.0
#include "mase/search/importances/importance.h"

#include <algorithm>
#include <cmath>

namespace mase::search {

Importances importances(const std::string& evaluator, const Trials& trials, size_t objective,
                        uint64_t seed) {
  const ImportanceRecord& record = Registry<ImportanceRecord>::instance().get(evaluator);
  std::vector<Point> points;
  std::vector<double> losses;
  for (const Trial& trial : trials) {
    if (trial.state != TrialState::complete || !trial.in_space) continue;
    const double loss = trials.loss(trial, objective);
    if (!std::isfinite(loss)) continue;
    points.push_back(trial.point);
    losses.push_back(loss);
  }
  Importances shares;
  if (points.size() < 2) return shares;
  const std::vector<double> raw = record.evaluate(trials.space(), points, losses, seed);
  double total = 0;
  for (const double value : raw) total += value;
  for (size_t i = 0; i < raw.size(); ++i) {
    const Parameter& parameter = trials.space().parameters()[i];
    if (parameter.distribution.is_single()) continue;
    const double even = 1 / static_cast<double>(raw.size());
    shares.emplace_back(parameter.name, total > 0 ? raw[i] / total : even);
  }
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.second > b.second; });
  return shares;
}

}  // namespace mase::search
