// SPDX-License-Identifier: Apache-2.0
// Read-back: what another program reads in the emitted SystemVerilog is proved to be the integer
// graph, port by port and node by node and for all inputs, cycle by cycle (net_ports.h). Sums are
// rebuilt as affine forms from the additions, subtractions and slices of the netlist, and compared
// with the graph's linear forms; everything else is compared for every value its operands can take,
// by trying them, or as functions of their bits (bit_logic.h) where these are many.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mase/hardware/emit/emitter.h"
#include "mase/hardware/prove/netlist.h"

namespace mase {

struct ReadBack {
  int64_t sums = 0;                  // affine nodes, proved by their forms
  int64_t functions = 0;             // other nodes, proved by all values of their operands
  int64_t wires = 0;                 // slices and registers, proved by their bits
  std::vector<std::string> skipped;  // too many operand bits for either
  std::string fault;                 // the first difference; empty: none

  bool proved() const { return fault.empty() && skipped.empty(); }
};

ReadBack read_back(const IntegerGraph& graph, const EmittedDesign& design, const Netlist& netlist);

}  // namespace mase
