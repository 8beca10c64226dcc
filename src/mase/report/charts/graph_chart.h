// SPDX-License-Identifier: Apache-2.0
// A network's graph as a drawing: boxes with operation, shape and format, each leading to what is
// known of its node.
#pragma once

#include <string>
#include <vector>

namespace mase {

struct GraphBox {
  std::string name, type, shape, format, kind;
  std::vector<std::string> inputs;  // names; those of no box are left out
  std::string link = {};
};

std::string graph_chart(const std::vector<GraphBox>& boxes);

}  // namespace mase
