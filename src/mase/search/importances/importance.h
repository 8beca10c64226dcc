// SPDX-License-Identifier: Apache-2.0
// How much each parameter matters. An evaluator is one file in importances/ that registers one
// record.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "mase/base/registry.h"
#include "mase/search/study/trial.h"

namespace mase::search {

using Importances = std::vector<std::pair<std::string, double>>;

struct ImportanceRecord {
  static constexpr const char* kind = "importance";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  // In the order of the parameters, not normalised. `losses` has one number, less is better, for
  // each of `points`.
  std::function<std::vector<double>(const Space& space, const std::vector<Point>& points,
                                    const std::vector<double>& losses, uint64_t seed)>
      evaluate;
};

// Of the complete trials for one objective: the shares add up to one, largest first. Empty with
// fewer than two trials.
Importances importances(const std::string& evaluator, const Trials& trials, size_t objective = 0,
                        uint64_t seed = 0);

}  // namespace mase::search
