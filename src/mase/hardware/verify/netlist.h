// SPDX-License-Identifier: Apache-2.0
// A module as Yosys writes it (write_json): named wires, cells of its word library or of a family
// of parts. What they compute: net_evaluator.h.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "mase/base/value.h"

namespace mase {

// A wire's number, or one of the constants.
using NetBit = int;
inline constexpr NetBit net_zero = -1, net_one = -2, net_unknown = -3;
using NetBits = std::vector<NetBit>;  // lowest first

struct NetCell {
  std::string type, name;
  std::map<std::string, NetBits> ports;
  std::map<std::string, int64_t> parameters;

  const NetBits& port(const std::string& name) const;
};

struct NetPort {
  bool is_input = false;
  NetBits bits;
};

struct Netlist {
  std::map<std::string, NetPort> ports;
  std::map<std::string, NetBits> wires;
  std::vector<NetCell> cells;
  // Bit -> cell, and its place in the port that drives it.
  std::map<NetBit, std::pair<int, int>> driver;

  const NetCell* driver_of(NetBit bit) const;
};

// Which ports of a cell of this type are results.
const std::vector<std::string>& results_of(const std::string& cell);

Netlist netlist_from(const Value& json, const std::string& top, const std::string& place);

}  // namespace mase
