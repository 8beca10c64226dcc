// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/format_error.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "mase/ir/learned.h"
#include "mase/passes/observe.h"

namespace mase {
namespace {

using PairVisit =
    std::function<void(NodeId node, const Shape& shape, int64_t at, double wanted, double found)>;

// visit(node, shape of one batch of results, place in it, reference's value, graph's value)
void visit_pairs(const Graph& reference, const Graph& graph, const std::vector<NodeId>& nodes,
                 const std::vector<Tensor>& rows, int threads, const PairVisit& visit) {
  observe_both(
      reference, graph, rows, nodes,
      [&](NodeId id, const Tensor& wanted, const Tensor& found) {
        for (int64_t i = 0; i < wanted.numel(); ++i)
          visit(id, wanted.shape(), i, wanted.data<float>()[i], found.data<float>()[i]);
      },
      threads);
}

}  // namespace

Graph without_formats(const Graph& graph) {
  Graph plain = graph;
  for (auto& [path, module] : plain.modules()) {
    for (const LearnedOperand& learned : learned_operands(module))
      std::erase_if(module.parameters,
                    [&](const auto& entry) { return entry.first == learned.parameter; });
    module.quantization = {};
  }
  for (const NodeId id : plain.order()) plain.node(id).quantization = {};
  return plain;
}

bool has_formats(const Graph& graph) {
  return std::any_of(graph.order().begin(), graph.order().end(),
                     [&](NodeId id) { return graph.quantization_of(graph.node(id)).active(); });
}

double format_error(const Graph& reference, const Graph& graph, const std::vector<NodeId>& nodes,
                    const std::vector<Tensor>& rows, int threads) {
  double error = 0, power = 0;
  visit_pairs(reference, graph, nodes, rows, threads,
              [&](NodeId, const Shape&, int64_t, double wanted, double found) {
                error += (found - wanted) * (found - wanted);
                power += wanted * wanted;
              });
  return power > 0 ? error / power : error;
}

std::vector<double> channel_bias(const Graph& reference, const Graph& graph, NodeId node,
                                 int64_t axis, const std::vector<Tensor>& rows, int threads) {
  std::vector<double> sums, counts;
  visit_pairs(reference, graph, {node}, rows, threads,
              [&](NodeId, const Shape& shape, int64_t at, double wanted, double found) {
                const auto rank = static_cast<int64_t>(shape.size());
                const auto place = static_cast<size_t>(axis < 0 ? axis + rank : axis);
                int64_t inner = 1;
                for (size_t i = place + 1; i < shape.size(); ++i) inner *= shape[i];
                sums.resize(static_cast<size_t>(shape[place]), 0.0);
                counts.resize(sums.size(), 0.0);
                const auto channel = static_cast<size_t>(at / inner % shape[place]);
                sums[channel] += found - wanted;
                counts[channel] += 1;
              });
  for (size_t i = 0; i < sums.size(); ++i) sums[i] /= std::max(1.0, counts[i]);
  return sums;
}

double largest_change(const Graph& first, const Graph& second, const std::vector<Tensor>& rows,
                      int threads) {
  double most = 0, largest = 0;
  visit_pairs(first, second, first.outputs(), rows, threads,
              [&](NodeId, const Shape&, int64_t, double wanted, double found) {
                most = std::max(most, std::fabs(found - wanted));
                largest = std::max(largest, std::fabs(wanted));
                if (std::isnan(found) != std::isnan(wanted)) most = INFINITY;
              });
  return largest > 0 ? most / largest : most;
}

}  // namespace mase
