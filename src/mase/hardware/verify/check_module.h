// SPDX-License-Identifier: Apache-2.0
// The check of one module: what Yosys reads in its SystemVerilog is proved to be the claimed graph,
// port by port and node by node, for all inputs and cycle by cycle (net_ports.h); and that graph to
// be the network's own, where the certificate has it (same_graph.h). Sums are rebuilt as affine
// forms from the additions, subtractions and slices of the netlist, and compared with the graph's;
// everything else is compared for every value that its operands can take, by trying them, or as
// functions of their bits (bit_logic.h) where these are many.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mase/hardware/verify/module_claim.h"
#include "mase/hardware/verify/netlist.h"
#include "mase/hardware/verify/same_graph.h"

namespace mase {

struct ModuleProof {
  int64_t sums = 0;                  // proved by their affine forms
  int64_t functions = 0;             // by all values of their operands
  int64_t diagrams = 0;              // as functions of their operands' bits
  int64_t wires = 0;                 // slices and registers, proved by their bits
  std::vector<std::string> skipped;  // too many operand bits for all of these
  std::string fault;                 // the first difference; empty: none
  SameGraph network;                 // the graph and the network's own

  bool proved() const { return fault.empty() && skipped.empty(); }
};

ModuleProof check_module(const ModuleClaim& claim, const Netlist& netlist);

}  // namespace mase
