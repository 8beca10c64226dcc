// SPDX-License-Identifier: Apache-2.0
// Whether two integer graphs are the same function of their inputs, for all of them: what
// optimisers made of a network, and the network.
#pragma once

#include <cstdint>
#include <string>

#include "mase/hardware/verify/checked_graph.h"

namespace mase {

struct SameGraph {
  enum class Answer { not_asked, same, different, unknown } answer = Answer::not_asked;
  // What was found to be the same in both: functions tabulated for all values of what they read,
  // and those known by what they do to which sums.
  int64_t tabulated = 0, by_form = 0;
  std::string reason;  // inputs for which they differ, or what could not be shown
};

SameGraph same_graph(const CheckedGraph& network, const CheckedGraph& graph);

}  // namespace mase
