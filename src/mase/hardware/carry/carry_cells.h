// SPDX-License-Identifier: Apache-2.0
// Carry chains in SystemVerilog: instances of two modules, which are made of the cells of a family
// of parts or, with the same meaning, of plain sums; and models of these cells for reading back.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "mase/hardware/graph/integer_graph.h"

namespace mase {

// What drives the wire `name` of a node `chain`; names of its own begin with `parts`.
std::string carry_cells_text(const IntegerContext& context, const std::string& name,
                             const std::string& parts, const std::vector<VerilogOperand>& operands);
// The two modules, by name, for parts with LUT6_2 and CARRY4; and for anything else.
std::map<std::string, std::string> carry_modules();
std::map<std::string, std::string> plain_carry_modules();
// What these cells do.
std::string carry_cell_models();

}  // namespace mase
