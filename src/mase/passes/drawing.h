// SPDX-License-Identifier: Apache-2.0
// Graphs as pictures: Graphviz' language, and an SVG of our own where Graphviz is not installed.
#pragma once

#include <optional>
#include <string>

#include "mase/ir/graph.h"

namespace mase {

std::string graph_dot(const Graph& graph);
// Layers from top to bottom by longest path, boxes and straight edges.
std::string graph_svg(const Graph& graph);
// Through the program `dot`; nothing if it is not installed or fails.
std::optional<std::string> dot_to_svg(const std::string& dot);

}  // namespace mase
