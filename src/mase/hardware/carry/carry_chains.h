// SPDX-License-Identifier: Apache-2.0
// Sums => explicit carry chains, for parts whose cells these are (carry_plan.h).
#pragma once

#include "mase/hardware/graph/integer_graph.h"

namespace mase {

struct CarryOptions {
  // How much a late result counts against more tables, as in the search for shared additions.
  double delay_weight = 8;
  // Tables that one chain takes in one after another before a new chain begins.
  int tables_in_line = 4;
};

// The same graph with its additions and subtractions as nodes `chain`. A sum that one other sum
// reads is part of that; what is left are trees of two and three operands, built anew. Sums and
// tables that only sums read are kept without sign (value less a constant), which the readers know.
IntegerGraph with_carry_chains(const IntegerGraph& graph, const CarryOptions& options = {});

// Tables of at most five bits that cost nothing, since the one chain that reads them has room for
// them in its own tables.
std::vector<char> tables_in_chains(const IntegerGraph& graph);

}  // namespace mase
