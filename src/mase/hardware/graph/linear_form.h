// SPDX-License-Identifier: Apache-2.0
// Linear forms: what a node is as a sum of multiples of other nodes and a constant. Roots are the
// nodes that are not affine in their operands. Intervals of linear forms are exact for independent
// roots; intervals of intervals are not ((a + b) + (a - b) is 2a).
#pragma once

#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "mase/hardware/graph/integer_graph.h"

namespace mase {

struct LinearForm {
  std::vector<std::pair<IntegerId, int64_t>> terms;  // by rising root, no zero factors
  int64_t constant = 0;

  bool operator==(const LinearForm&) const = default;
};

// a * x + b * y. Overflow of 64 bits is an error.
LinearForm combine(const LinearForm& x, int64_t a, const LinearForm& y, int64_t b);
IntegerRange range_of(const LinearForm& form, const IntegerGraph& graph);
IntegerRange range_of(const LinearForm& form, const std::vector<IntegerRange>& roots);

// Of every node, over roots. A root's form is itself; a constant's has no terms.
std::vector<LinearForm> linear_forms(const IntegerGraph& graph);
// The same one after another in the graph's order. A form is kept only as long as a later one is
// built from it: all of them together are far larger than the graph.
void visit_linear_forms(const IntegerGraph& graph,
                        const std::function<void(size_t node, const LinearForm& form)>& visit);

// low + high of a * range: multiplication that refuses to overflow.
int64_t checked_multiply(int64_t a, int64_t b);
int64_t checked_add(int64_t a, int64_t b);

}  // namespace mase
