// SPDX-License-Identifier: Apache-2.0
// How a child's numbers come from its parents' (on the line of each parameter). A crossover is one
// record in crossovers/.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "mase/base/registry.h"

namespace mase::search {

struct CrossoverInput {
  std::vector<std::vector<double>> parents;
  std::vector<std::pair<double, double>> bounds;
  bool several_objectives = false;
  std::function<double()> uniform, normal;
};

struct CrossoverRecord {
  static constexpr const char* kind = "crossover";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  size_t parents = 2;
  std::function<std::vector<double>(const CrossoverInput& input)> cross;
};

// Deb's polynomial mutation of one number, for u in [0, 1).
double polynomial_mutation(double u, double x, double low, double high, double eta);

}  // namespace mase::search
