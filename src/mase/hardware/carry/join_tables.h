// SPDX-License-Identifier: Apache-2.0
// Tables that one sum adds up => fewer, wider tables: an adder of explicit carry cells takes a
// table of five bits in for nothing, so that those of two and three bits do it together.
#pragma once

#include "mase/hardware/graph/integer_graph.h"

namespace mase {

// The same graph, its sums as they were lowered. As many of the joined tables as chains of
// `tables_in_line` begin with one have six bits, which a chain's first operand may have.
IntegerGraph with_joined_tables(const IntegerGraph& graph, int tables_in_line = 4);

}  // namespace mase
