// SPDX-License-Identifier: Apache-2.0
// The cheapest cut between a source and a sink (Dinic, 1970). Same edges, same cut.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mase {

class MinCut {
 public:
  static constexpr int64_t endless = INT64_MAX / 4;

  explicit MinCut(int nodes) : edges_of_(static_cast<size_t>(nodes)) {}

  void edge(int from, int to, int64_t capacity);

  // Which nodes lie on the source's side. Of several cheapest cuts the one nearest to the sink.
  std::vector<char> solve(int source, int sink);

 private:
  struct Edge {
    int to;
    int64_t rest;
  };
  bool find_levels(int source, int sink);
  int64_t push(int node, int sink, int64_t limit);

  std::vector<Edge> edges_;  // an edge and, behind it, its opposite
  std::vector<std::vector<int>> edges_of_;
  std::vector<int> level_;
  std::vector<size_t> next_;
};

}  // namespace mase
