// SPDX-License-Identifier: Apache-2.0
// Registers for a delay target: every path from inputs to outputs gets the same number of them.
#pragma once

#include "mase/hardware/integer_graph.h"

namespace mase {

// At most so many levels of logic between registers; outputs are registered. Each operation is put
// as early or as late as it can be, whichever needs fewer register bits. A single operation with
// more levels stands alone in its stage.
IntegerGraph pipeline(const IntegerGraph& graph, double levels);

}  // namespace mase
