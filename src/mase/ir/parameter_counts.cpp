// SPDX-License-Identifier: Apache-2.0
#include "mase/ir/parameter_counts.h"

namespace mase {

ParameterCounts count_parameters(const Graph& graph) {
  ParameterCounts counts;
  counts.all = graph.parameter_count(false);
  for (const auto& [path, module] : graph.modules())
    for (const auto& [name, mask] : module.masks)
      for (int64_t i = 0; i < mask.numel(); ++i) counts.pruned += mask.item(i) == 0;
  return counts;
}

}  // namespace mase
