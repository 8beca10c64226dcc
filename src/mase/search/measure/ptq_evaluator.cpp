// SPDX-License-Identifier: Apache-2.0
#include "mase/search/measure/ptq_evaluator.h"

#include <algorithm>
#include <cmath>

#include "mase/base/text.h"

namespace mase::search {

PtqEvaluator::PtqEvaluator(const Graph& graph, const QuantizeSpace& space, EvaluationRows rows,
                           int64_t batch_size, const FigureSet& figures)
    : graph_(graph),
      space_(space),
      rows_(rows),
      batch_size_(batch_size),
      figures_(figures),
      by_costs_(!figures.needs(FigureNeeds::design) && !figures.needs(FigureNeeds::network)),
      losses_(std::any_of(figures.wanted().begin(), figures.wanted().end(),
                          [](const FigureRecord* record) {
                            return record->is_software() && record->name != "accuracy";
                          })),
      parameters_(count_parameters(graph)) {
  check_split(*rows_.split, *rows_.dataset, graph_);
  rows_.rows = std::min(rows_.rows, rows_.split->rows());
}

Graph PtqEvaluator::untrained(const Point& point) const {
  Candidate candidate{graph_, {}};
  space_.apply(point, {}, candidate);
  return std::move(candidate.graph);
}

CostTable::CostTable(const Graph& graph, const QuantizeSpace& space)
    : graph_(graph), space_(space) {
  for (const LayerCost& layer : network_cost(graph, 1).layers) {
    std::vector<size_t>& own = parameters_.emplace_back();
    for (size_t p = 0; p < space.space().dimensions(); ++p)
      if (starts_with(space.space().parameters()[p].name, layer.name + "/")) own.push_back(p);
  }
  known_.resize(parameters_.size());
}

CostTable::Key CostTable::key(size_t layer, const Point& point) const {
  Key values;
  for (const size_t parameter : parameters_[layer])
    values.push_back(std::isnan(point[parameter]) ? -1 : point[parameter]);
  return values;
}

NetworkCost CostTable::cost(const Point& point) {
  NetworkCost result;
  for (size_t layer = 0; layer < parameters_.size(); ++layer) {
    const auto found = known_[layer].find(key(layer, point));
    if (found == known_[layer].end()) {
      Candidate candidate{graph_, {}};
      space_.apply(point, {}, candidate);
      result = network_cost(candidate.graph, 1);
      for (size_t i = 0; i < parameters_.size(); ++i)
        known_[i].emplace(key(i, point), result.layers[i]);
      return result;
    }
    result.layers.push_back(found->second);
  }
  return result;
}

PtqEvaluator::OwnSession::OwnSession(const PtqEvaluator& owner)
    : evaluator(owner),
      runner(owner.graph_, owner.space_, *owner.rows_.dataset, *owner.rows_.split, owner.rows_.rows,
             owner.batch_size_, owner.losses_),
      costs(owner.graph_, owner.space_) {}

// A design takes longer than the rows: a group of them would keep everybody waiting.
int64_t PtqEvaluator::OwnSession::at_once() const {
  return evaluator.by_costs_ ? runner.at_once() : 1;
}

std::vector<Evaluator::Result> PtqEvaluator::OwnSession::measure(std::span<const Point> points,
                                                                 const Calls&) {
  std::vector<Result> all(points.size());
  const std::vector<Score> measured = runner.run(points);
  for (size_t i = 0; i < points.size(); ++i) {
    try {
      all[i].figures.hardware = hardware(points[i]);
      all[i].figures.software = evaluator.figures_.software(measured[i]);
    } catch (const Error& error) {  // of a design that this configuration does not give
      all[i] = {};
      all[i].end = End::failed;
      all[i].failure = error.what();
    }
  }
  return all;
}

Dict PtqEvaluator::OwnSession::hardware(const Point& point) {
  if (!evaluator.by_costs_) return evaluator.figures_.hardware(evaluator.untrained(point));
  return evaluator.figures_.hardware(costs.cost(point), evaluator.parameters_);
}

}  // namespace mase::search
