// SPDX-License-Identifier: Apache-2.0
// What a design is written for: any tool and part, or the cells of a family.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "mase/base/registry.h"

namespace mase {

struct TargetRecord {
  static constexpr const char* kind = "target";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  bool cells = false;  // sums are explicit chains (carry_chains.h), wide tables are cells
  // Modules that these are instances of, by name: of the family's cells, and with the same
  // meaning of plain sums, for simulators and other parts. Models of the cells, for simulation.
  std::function<std::map<std::string, std::string>()> modules = {}, plain_modules = {};
  std::function<std::string()> models = {};
  // Where Yosys has the cells' ports; what they compute is the checker's own.
  std::string library = {};
};

}  // namespace mase
