// SPDX-License-Identifier: Apache-2.0
// Which activations a network's number formats cut off, and how many of their values: what training
// cannot mend, since nothing beyond a range has a gradient.
#pragma once

#include <string>
#include <vector>

#include "mase/ir/graph.h"

namespace mase {

struct Saturation {
  std::string node, operand;
  double share = 0;  // of the values that lie beyond the format's ends
  double lowest = 0, largest = 0;
};

// Of every activation whose format has ends, in the graph's order.
std::vector<Saturation> saturations(const Graph& graph, const std::vector<Tensor>& inputs);

// A line about those of which more than a twentieth is cut off; empty if there is none.
std::string saturation_text(const std::vector<Saturation>& found);

}  // namespace mase
