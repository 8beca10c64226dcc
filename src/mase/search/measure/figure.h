// SPDX-License-Identifier: Apache-2.0
// What a search may be for. A figure is one record, one file in figures/ (or of a plug-in, or a
// function of Python): what it is called, which way is better, what must be known of a network to
// say it, and its value. Metrics, runners, tables, pages and directions follow from the record.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/hardware/emit/emitter.h"
#include "mase/ir/graph.h"
#include "mase/ir/parameter_counts.h"
#include "mase/passes/costs.h"
#include "mase/train/evaluation.h"

namespace mase::search {

enum class FigureNeeds {
  rows,     // how it does on the rows of the search
  costs,    // bits and operations, from the number types
  design,   // the hardware that it becomes
  network,  // the network itself
};

// What is known of a network; what no figure of the search needs is left out.
struct Measured {
  const Score* score = nullptr;
  const NetworkCost* cost = nullptr;
  LayerCost total = {};  // of the cost
  ParameterCounts parameters = {};
  const Estimate* design = nullptr;
  const Graph* network = nullptr;
  double compare_to = 32;  // bits that densities compare with
};

struct FigureRecord {
  static constexpr const char* kind = "figure";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  FigureNeeds needs = FigureNeeds::costs;
  bool higher_is_better = false;
  bool percent = false;     // a share: pages show it in per cent
  std::string unit = {};    // "ns"
  bool for_numbers = true;  // regression has it too
  // Runners of MASE give several figures: those that are kept with this one.
  std::vector<std::string> companions = {};
  std::function<double(const Measured& known)> value;

  bool is_software() const { return needs == FigureNeeds::rows; }
};

}  // namespace mase::search
