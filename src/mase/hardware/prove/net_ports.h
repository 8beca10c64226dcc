// SPDX-License-Identifier: Apache-2.0
// The outside of an emitted module as another program reads it: its ports, and in which clock cycle
// what comes out of them was put in.
#pragma once

#include <string>
#include <vector>

#include "mase/hardware/emit/emitter.h"
#include "mase/hardware/prove/netlist.h"

namespace mase {

// What is wrong; empty: nothing. Checked are the names, directions and widths of all ports; that
// each input of the graph is its slice of in_data and each slice of out_data its output, in their
// order; that from in_data to every bit of out_data each path has as many registers, all on the
// rising edge of clk, as the design says; and that out_valid is in_valid as many cycles later,
// cleared by rst. `names` are the emitted signals of all nodes.
std::string port_fault(const IntegerGraph& graph, const EmittedDesign& design,
                       const std::vector<std::string>& names, const Netlist& netlist);

}  // namespace mase
