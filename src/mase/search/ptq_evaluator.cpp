// SPDX-License-Identifier: Apache-2.0
#include "mase/search/ptq_evaluator.h"

#include <algorithm>

#include "mase/engine/program.h"
#include "mase/passes/costs.h"

namespace mase::search {

std::vector<std::string> software_figures(bool classification) {
  return classification ? std::vector<std::string>{"accuracy", "loss"}
                        : std::vector<std::string>{"loss"};
}

std::vector<std::string> hardware_figures() {
  std::vector<std::string> names = {"average_bitwidth", "memory_density",
                                    "average_activation_bitwidth"};
  for (const CostQuantity& quantity : cost_quantities()) names.emplace_back(quantity.key);
  return names;
}

PtqEvaluator::PtqEvaluator(const Graph& graph, const QuantizeSpace& space, EvaluationRows rows,
                           int64_t batch_size, double compare_to)
    : graph_(graph), space_(space), rows_(rows), batch_size_(batch_size), compare_to_(compare_to) {
  check_split(*rows_.split, *rows_.dataset, graph_);
  rows_.rows = std::min(rows_.rows, rows_.split->rows());
}

Graph PtqEvaluator::quantised(const Point& point) const {
  Graph graph = graph_;
  const std::vector<PlannedNode> plan = space_.plan(graph, point);
  if (!plan.empty()) apply_quantize_plan(graph, plan, PassContext());
  return graph;
}

Score PtqEvaluator::score(const Graph& quantised, const Split& split, int64_t rows) const {
  CompileOptions options;
  options.batch_size = std::min(batch_size_, std::max<int64_t>(1, rows));
  options.loss = loss_for(*rows_.dataset);
  Program program = Program::compile(quantised, options);
  return score_rows(program, split, 0, std::min(rows, split.rows()));
}

PrefixRunner PtqEvaluator::runner() const {
  return {graph_, space_, *rows_.dataset, *rows_.split, rows_.rows, batch_size_};
}

Figures PtqEvaluator::measure(const Point& point, PrefixRunner& runner) const {
  Figures figures;
  const Graph graph = quantised(point);
  const Score result = runner.run(point);
  figures.software.set("loss", result.loss());
  if (rows_.dataset->classification) figures.software.set("accuracy", result.accuracy());
  const NetworkCost cost = network_cost(graph, 1);
  const double bits = cost.average_weight_bits();
  figures.hardware.set("average_bitwidth", bits);
  figures.hardware.set("memory_density", bits > 0 ? compare_to_ / bits : 0.0);
  figures.hardware.set("average_activation_bitwidth", cost.average_activation_bits());
  const LayerCost total = cost.total();
  for (const CostQuantity& quantity : cost_quantities())
    figures.hardware.set(quantity.key, quantity.of(total));
  return figures;
}

}  // namespace mase::search
