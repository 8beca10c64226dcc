// SPDX-License-Identifier: Apache-2.0
#include "mase/search/ptq_evaluator.h"

#include <algorithm>
#include <cmath>

#include "mase/base/text.h"

namespace mase::search {

PtqEvaluator::PtqEvaluator(const Graph& graph, const QuantizeSpace& space, EvaluationRows rows,
                           int64_t batch_size, FigureOptions figures)
    : graph_(graph),
      space_(space),
      rows_(rows),
      batch_size_(batch_size),
      figures_(figures),
      parameters_(count_parameters(graph)) {
  check_split(*rows_.split, *rows_.dataset, graph_);
  rows_.rows = std::min(rows_.rows, rows_.split->rows());
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

PtqEvaluator::Session PtqEvaluator::session() const {
  return {{graph_, space_, *rows_.dataset, *rows_.split, rows_.rows, batch_size_, figures_.loss},
          {graph_, space_}};
}

std::vector<Figures> PtqEvaluator::measure(std::span<const Point> points, Session& session) const {
  const std::vector<Score> scores = session.runner.run(points);
  std::vector<Figures> all(points.size());
  for (size_t i = 0; i < points.size(); ++i) {
    all[i].software = software_of(scores[i], rows_.dataset->classification);
    if (!figures_.loss) all[i].software.erase("loss");
    all[i].hardware = hardware(points[i], session);
  }
  return all;
}

Dict PtqEvaluator::hardware(const Point& point, Session& session) const {
  if (!figures_.design) return hardware_of(session.costs.cost(point), parameters_, figures_);
  Candidate candidate{graph_, {}};
  space_.apply(point, {}, candidate);
  return hardware_of(candidate.graph, figures_);
}

}  // namespace mase::search
