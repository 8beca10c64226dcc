// SPDX-License-Identifier: Apache-2.0
// A module as Yosys reads it (write_json after proc and flatten): named wires and cells of its word
// library. What they compute: net_evaluator.h.
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
  std::string type;
  std::map<std::string, NetBits> ports;
  std::map<std::string, int64_t> parameters;

  const NetBits& port(const std::string& name) const;
  bool has(const std::string& name) const { return ports.count(name) > 0; }
};

struct NetPort {
  bool is_input = false;
  NetBits bits;
};

struct Netlist {
  std::map<std::string, NetPort> ports;
  std::map<std::string, NetBits> wires;
  std::vector<NetCell> cells;
  std::map<NetBit, std::pair<int, int>> driver;  // bit -> cell and place in its output
};

Netlist netlist_from(const Value& json, const std::string& top, const std::string& place);

}  // namespace mase
