// SPDX-License-Identifier: Apache-2.0
// Which nodes a pass means: by MASE op ("linear"), by node name ("seq_blocks_2") or by a regular
// expression over names. A pattern that matches nothing is a mistake, and is told the near misses.
#pragma once

#include <string>
#include <vector>

#include "mase/base/schema.h"
#include "mase/ir/graph.h"

namespace mase {

enum class SelectBy { type, name, regex_name };

Field by_field();                     // "by", one of the three
SelectBy select_by(const Value& by);  // of a validated field

// The nodes one pattern matches, in graph order. Nothing found, or a bad expression, is added to
// the problems at `position` and `path`.
std::vector<NodeId> select_nodes(const Graph& graph, SelectBy by, const std::string& pattern,
                                 const Position& position, const std::string& path,
                                 Problems& problems);

// The union over a list of patterns (a list of texts, or one text).
std::vector<NodeId> select_nodes(const Graph& graph, SelectBy by, const Value& patterns,
                                 const std::string& path, Problems& problems);

}  // namespace mase
