// SPDX-License-Identifier: Apache-2.0
// The class instead of the outputs.
#pragma once

#include "mase/hardware/graph/integer_graph.h"

namespace mase {

// The graph with the number of its largest output instead: the first of equals, as PyTorch's
// argmax.
IntegerGraph with_argmax(const IntegerGraph& graph);

}  // namespace mase
