// SPDX-License-Identifier: Apache-2.0
// Measures networks of a search over number formats alone, without retraining: what configurations
// share is computed once (see prefix_runner.h).
#pragma once

#include <map>
#include <span>
#include <vector>

#include "mase/passes/costs.h"
#include "mase/search/figures.h"
#include "mase/search/prefix_runner.h"
#include "mase/search/quantize_space.h"

namespace mase::search {

// What layers cost with each of their configurations: looked up, because a layer's cost depends on
// its own formats alone.
class CostTable {
 public:
  CostTable(const Graph& graph, const QuantizeSpace& space);
  NetworkCost cost(const Point& point);

 private:
  using Key = std::vector<double>;
  Key key(size_t layer, const Point& point) const;

  const Graph& graph_;
  const QuantizeSpace& space_;
  std::vector<std::vector<size_t>> parameters_;  // of each row of the cost
  std::vector<std::map<Key, LayerCost>> known_;
};

// May be used by several threads at once, each with a session of its own.
class PtqEvaluator {
 public:
  PtqEvaluator(const Graph& graph, const QuantizeSpace& space, EvaluationRows rows,
               int64_t batch_size, FigureOptions figures);

  struct Session {
    PrefixRunner runner;
    CostTable costs;
  };
  Session session() const;
  // Points that follow each other share what they have in common.
  std::vector<Figures> measure(std::span<const Point> points, Session& session) const;
  Dict hardware(const Point& point, Session& session) const;  // what needs no rows

 private:
  const Graph& graph_;
  const QuantizeSpace& space_;
  EvaluationRows rows_;
  int64_t batch_size_;
  FigureOptions figures_;
  ParameterCounts parameters_;  // of the network
};

}  // namespace mase::search
