// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/optimize/min_cut.h"

#include <algorithm>

namespace mase {

void MinCut::edge(int from, int to, int64_t capacity) {
  edges_of_[static_cast<size_t>(from)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({to, capacity});
  edges_of_[static_cast<size_t>(to)].push_back(static_cast<int>(edges_.size()));
  edges_.push_back({from, 0});
}

bool MinCut::find_levels(int source, int sink) {
  level_.assign(edges_of_.size(), -1);
  level_[static_cast<size_t>(source)] = 0;
  std::vector<int> queue = {source};
  for (size_t at = 0; at < queue.size(); ++at)
    for (const int index : edges_of_[static_cast<size_t>(queue[at])]) {
      const Edge& edge = edges_[static_cast<size_t>(index)];
      if (edge.rest == 0 || level_[static_cast<size_t>(edge.to)] >= 0) continue;
      level_[static_cast<size_t>(edge.to)] = level_[static_cast<size_t>(queue[at])] + 1;
      queue.push_back(edge.to);
    }
  return level_[static_cast<size_t>(sink)] >= 0;
}

// Along a path of rising levels, kept on a stack: graphs are thousands of nodes deep.
int64_t MinCut::push(int source, int sink, int64_t limit) {
  std::vector<int> path;
  int node = source;
  while (node != sink) {
    size_t& next = next_[static_cast<size_t>(node)];
    const std::vector<int>& own = edges_of_[static_cast<size_t>(node)];
    bool moved = false;
    for (; next < own.size(); ++next) {
      const Edge& edge = edges_[static_cast<size_t>(own[next])];
      if (edge.rest == 0 ||
          level_[static_cast<size_t>(edge.to)] != level_[static_cast<size_t>(node)] + 1)
        continue;
      path.push_back(own[next]);
      node = edge.to;
      moved = true;
      break;
    }
    if (moved) continue;
    if (path.empty()) return 0;
    // A dead end is not entered again.
    level_[static_cast<size_t>(node)] = -1;
    node = edges_[static_cast<size_t>(path.back() ^ 1)].to;
    path.pop_back();
  }
  for (const int index : path) limit = std::min(limit, edges_[static_cast<size_t>(index)].rest);
  for (const int index : path) {
    edges_[static_cast<size_t>(index)].rest -= limit;
    edges_[static_cast<size_t>(index ^ 1)].rest += limit;
  }
  return limit;
}

std::vector<char> MinCut::solve(int source, int sink) {
  while (find_levels(source, sink)) {
    next_.assign(edges_of_.size(), 0);
    while (push(source, sink, endless) > 0) {
    }
  }
  // Everything that cannot reach the sink any more.
  std::vector<char> is_source_side(edges_of_.size(), 1);
  std::vector<int> queue = {sink};
  is_source_side[static_cast<size_t>(sink)] = 0;
  for (size_t at = 0; at < queue.size(); ++at)
    for (const int index : edges_of_[static_cast<size_t>(queue[at])]) {
      const int from = edges_[static_cast<size_t>(index)].to;
      if (!is_source_side[static_cast<size_t>(from)] ||
          edges_[static_cast<size_t>(index ^ 1)].rest == 0)
        continue;
      is_source_side[static_cast<size_t>(from)] = 0;
      queue.push_back(from);
    }
  return is_source_side;
}

}  // namespace mase
