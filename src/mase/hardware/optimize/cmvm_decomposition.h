// SPDX-License-Identifier: Apache-2.0
// W = W1 W2: columns that differ little from one another are built from one another. The columns
// and zero are the vertices of a graph, the fewest signed digits of a - b or a + b the distance of
// two; a spanning tree from zero, of limited depth, says which differences are computed (the
// columns of W1) and which of them make up each column (W2).
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "mase/hardware/optimize/cmvm.h"

namespace mase {

struct CmvmDecomposition {
  struct Part {
    int edge = 0;
    bool negative = false;
  };
  std::vector<std::vector<int64_t>> edges;  // [edge][in]
  std::vector<std::vector<Part>> columns;   // a column is the sum of these edges
  int64_t digits = 0;                       // of all edges, and one where an edge is joined
};

// Nothing where every column is nearest to zero, or the matrix is too large to try. `depth`: so
// many edges at most between zero and a column.
std::optional<CmvmDecomposition> decompose(const CmvmProblem& problem, int depth);

}  // namespace mase
