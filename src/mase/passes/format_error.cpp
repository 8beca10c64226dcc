// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/format_error.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <set>

#include "mase/ir/learned.h"
#include "mase/passes/observe.h"

namespace mase {
namespace {

using PairVisit = std::function<void(const Shape& shape, int64_t at, double wanted, double found)>;

// visit(shape of one batch of results, place in it, reference's value, graph's value)
void visit_pairs(const Graph& reference, const Graph& graph, const NodePairs& pairs,
                 const std::vector<Tensor>& rows, int threads, const PairVisit& visit) {
  observe_both(
      reference, graph, rows, pairs,
      [&](size_t, const Tensor& wanted, const Tensor& found) {
        for (int64_t i = 0; i < wanted.numel(); ++i)
          visit(wanted.shape(), i, wanted.data<float>()[i], found.data<float>()[i]);
      },
      threads);
}

NodePairs same_nodes(const std::vector<NodeId>& nodes) {
  NodePairs pairs;
  for (const NodeId id : std::set<NodeId>(nodes.begin(), nodes.end())) pairs.emplace_back(id, id);
  return pairs;
}

// A pass may have put other nodes in the place of outputs.
NodePairs output_pairs(const Graph& first, const Graph& second) {
  const std::vector<NodeId> a = first.outputs(), b = second.outputs();
  MASE_CHECK(a.size() == b.size(), "{} outputs and {}", a.size(), b.size());
  std::set<std::pair<NodeId, NodeId>> pairs;
  for (size_t i = 0; i < a.size(); ++i) pairs.emplace(a[i], b[i]);
  return {pairs.begin(), pairs.end()};
}

// Squares of differences over the power of the reference's.
double share_of_error(const Graph& reference, const Graph& graph, const NodePairs& pairs,
                      const std::vector<Tensor>& rows, int threads) {
  double error = 0, power = 0;
  visit_pairs(reference, graph, pairs, rows, threads,
              [&](const Shape&, int64_t, double wanted, double found) {
                error += (found - wanted) * (found - wanted);
                power += wanted * wanted;
              });
  return power > 0 ? error / power : error;
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
  return share_of_error(reference, graph, same_nodes(nodes), rows, threads);
}

double output_format_error(const Graph& reference, const Graph& graph,
                           const std::vector<Tensor>& rows, int threads) {
  return share_of_error(reference, graph, output_pairs(reference, graph), rows, threads);
}

std::vector<double> channel_bias(const Graph& reference, const Graph& graph, NodeId node,
                                 int64_t axis, const std::vector<Tensor>& rows, int threads) {
  std::vector<double> sums, counts;
  visit_pairs(reference, graph, {{node, node}}, rows, threads,
              [&](const Shape& shape, int64_t at, double wanted, double found) {
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
  visit_pairs(first, second, output_pairs(first, second), rows, threads,
              [&](const Shape&, int64_t, double wanted, double found) {
                most = std::max(most, std::fabs(found - wanted));
                largest = std::max(largest, std::fabs(wanted));
                if (std::isnan(found) != std::isnan(wanted)) most = INFINITY;
              });
  return largest > 0 ? most / largest : most;
}

}  // namespace mase
