// SPDX-License-Identifier: Apache-2.0
// Emitted designs placed and routed by nextpnr, where they fit: the only timing here that is no
// model. Parts are records.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/base/value.h"

namespace mase {

struct PlacementPart {
  static constexpr const char* kind = "part";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  std::string synthesis;              // the command of Yosys
  std::vector<std::string> programs;  // of nextpnr, whichever is there
  std::string remedy;                 // how to get one
  std::vector<std::string> arguments;
  std::string cell;    // what it calls a logic cell
  int64_t most_cells;  // of these
};

struct Placement {
  std::string part, program;
  int64_t cells = 0, of = 0;  // logic cells, and how many the part has
  double mhz = 0;             // after routing
  double seconds = 0;
};
// The design stands between registers of its own: inputs come from a shift register and outputs go
// into one, so that a part needs three pins. A design that does not fit is an error that says so.
Placement place_folder(const std::string& folder, const std::string& part);
Value to_value(const Placement& placement);

}  // namespace mase
