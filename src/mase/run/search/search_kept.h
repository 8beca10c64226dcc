// SPDX-License-Identifier: Apache-2.0
// Trained networks of the trials that are best so far, so that none of them is trained again for
// its file. One that another trial beats is let go.
#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "mase/ir/graph.h"
#include "mase/search/study/pareto.h"
#include "mase/search/study/space.h"

namespace mase {

class KeptNetworks {
 public:
  // `losses`: less is better in each. Kept unless another one is better, or memory is full.
  void take(const search::Point& point, search::Losses losses, Graph network);
  void keep(const search::Point& point, const Graph& network);  // whatever it is worth
  std::optional<Graph> find(const search::Point& point);
  size_t size();

 private:
  struct Entry {
    search::Losses losses;  // empty: whatever it is worth
    Graph network;
    size_t bytes = 0;
  };
  static constexpr size_t most_bytes = size_t{1} << 30;

  std::mutex mutex_;
  std::map<uint64_t, Entry> networks_;  // by the point's hash
  size_t bytes_ = 0;
};

}  // namespace mase
