// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/lower/argmax.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "mase/hardware/graph/builder.h"

namespace mase {

IntegerGraph with_argmax(const IntegerGraph& graph) {
  IntegerBuilder builder(graph);
  builder.add_layer("argmax");
  std::vector<IntegerId> values = graph.outputs;
  int frac = builder.at(values.at(0)).frac;
  for (const IntegerId value : values) frac = std::max(frac, builder.at(value).frac);
  struct Candidate {
    IntegerId value, index;
  };
  std::vector<Candidate> candidates;
  for (size_t i = 0; i < values.size(); ++i)
    candidates.push_back(
        {builder.aligned(values[i], frac), builder.constant(static_cast<int64_t>(i), 0)});
  // Neighbours meet, so that the earlier one is always on the left: only a larger one beats it.
  while (candidates.size() > 1) {
    std::vector<Candidate> next;
    for (size_t i = 0; i + 1 < candidates.size(); i += 2) {
      const IntegerId later = builder.compare(candidates[i].value, candidates[i + 1].value);
      next.push_back({builder.select(later, candidates[i + 1].value, candidates[i].value),
                      builder.select(later, candidates[i + 1].index, candidates[i].index)});
    }
    if (candidates.size() % 2 == 1) next.push_back(candidates.back());
    candidates = std::move(next);
  }
  IntegerGraph result = builder.graph();
  result.outputs = {candidates[0].index};
  result.at(candidates[0].index).name = "class";
  result = without_dead_nodes(result);
  verify(result);
  return result;
}

}  // namespace mase
