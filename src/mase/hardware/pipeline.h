// SPDX-License-Identifier: Apache-2.0
// Registers for a delay target: every path from inputs to outputs gets the same number of them.
#pragma once

#include "mase/hardware/integer_graph.h"

namespace mase {

// At most so many levels of logic between registers; outputs are registered. Stages are as few as
// the target allows, and every boundary is the cut through the graph whose registers have the
// fewest bits. A single operation with more levels stands alone in its stage.
IntegerGraph pipeline(const IntegerGraph& graph, double levels);

}  // namespace mase
