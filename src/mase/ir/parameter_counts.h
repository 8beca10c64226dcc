// SPDX-License-Identifier: Apache-2.0
// How many parameters a network has, and how many of them pruning has set to zero: masked ones are
// stored and counted like others until a design leaves them out.
#pragma once

#include "mase/ir/graph.h"

namespace mase {

struct ParameterCounts {
  int64_t all = 0;
  int64_t pruned = 0;  // of them: those that a mask keeps at zero
};
ParameterCounts count_parameters(const Graph& graph);

}  // namespace mase
