// SPDX-License-Identifier: Apache-2.0
// Registers for a delay target: every path from inputs to outputs gets the same number of them.
#pragma once

#include "mase/hardware/graph/integer_graph.h"

namespace mase {

// At most so many levels of logic between registers; outputs are registered. Stages are as few as
// the target allows, and every boundary is the cut through the graph whose registers have the
// fewest bits. Operations are not split: a target below the longest of them is refused with the
// levels that it takes.
IntegerGraph pipeline(const IntegerGraph& graph, double levels);

}  // namespace mase
