// SPDX-License-Identifier: Apache-2.0
// Measures networks of a search over number formats alone, without retraining: what configurations
// share is computed once (see prefix_runner.h).
#pragma once

#include <map>
#include <span>
#include <vector>

#include "mase/passes/costs.h"
#include "mase/search/measure/evaluator.h"
#include "mase/search/measure/prefix_runner.h"
#include "mase/search/spaces/quantize_space.h"

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

class PtqEvaluator final : public Evaluator {
 public:
  PtqEvaluator(const Graph& graph, const QuantizeSpace& space, EvaluationRows rows,
               int64_t batch_size, const FigureSet& figures);

  // With what it is made of, for tests.
  struct OwnSession final : Session {
    explicit OwnSession(const PtqEvaluator& owner);
    std::vector<Result> measure(std::span<const Point> points, const Calls& calls) override;
    int64_t at_once() const override;
    Dict hardware(const Point& point) override;
    std::vector<Score> scores(std::span<const Point> points) override { return runner.run(points); }

    const PtqEvaluator& evaluator;
    PrefixRunner runner;
    CostTable costs;
  };
  std::unique_ptr<Session> session() const override { return std::make_unique<OwnSession>(*this); }
  bool shares_work() const override { return true; }
  Graph untrained(const Point& point) const override;

 private:
  const Graph& graph_;
  const QuantizeSpace& space_;
  EvaluationRows rows_;
  int64_t batch_size_;
  const FigureSet& figures_;
  bool by_costs_;  // costs of layers say all that is wanted besides scores
  bool losses_;
  ParameterCounts parameters_;  // of the network
};

}  // namespace mase::search
