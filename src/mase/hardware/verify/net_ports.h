// SPDX-License-Identifier: Apache-2.0
// The outside of an emitted module as another program reads it: its ports, and in which clock cycle
// what comes out of them was put in.
#pragma once

#include <string>

#include "mase/hardware/verify/module_claim.h"
#include "mase/hardware/verify/netlist.h"

namespace mase {

// What is wrong; empty: nothing. Checked are the names, directions and widths of all ports; that
// each input of the graph is its slice of in_data and each slice of out_data its output, in their
// order; that from in_data to every bit of out_data each path has as many registers, all on the
// rising edge of clk, as is claimed; and that out_valid is in_valid as many cycles later, cleared
// by rst.
std::string port_fault(const ModuleClaim& claim, const Netlist& netlist);

}  // namespace mase
