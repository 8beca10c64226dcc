// SPDX-License-Identifier: Apache-2.0
// What a certificate claims of one module: that it is a graph, wire by wire, and that this graph is
// another one, the network's own, for all inputs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/base/value.h"
#include "mase/hardware/verify/checked_graph.h"

namespace mase {

struct ModuleClaim {
  std::string name;
  CheckedGraph graph;
  std::vector<std::string> signals;  // the wire of every node
  int latency = 0;                   // clock cycles; 0: no clock
  bool valid = false;
  std::string target = {};  // whose cells it is made of; empty: of none
  // The network as it was lowered, nothing optimised.
  std::optional<CheckedGraph> network = {};
};

// Of a file that anybody may have written: every graph is held to its rules, names to theirs.
std::vector<ModuleClaim> module_claims(const Value& certificate, const std::string& place);

}  // namespace mase
