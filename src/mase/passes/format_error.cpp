// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/format_error.h"

#include <algorithm>
#include <cmath>
#include <functional>

#include "mase/ir/learned.h"
#include "mase/passes/observe.h"

namespace mase {
namespace {

constexpr int64_t rows_together = 256;

using PairVisit =
    std::function<void(NodeId node, const Shape& shape, int64_t at, double wanted, double found)>;

// visit(node, shape of one batch of results, place in it, reference's value, graph's value)
void visit_pairs(const Graph& reference, const Graph& graph, const std::vector<NodeId>& nodes,
                 const std::vector<Tensor>& rows, const PairVisit& visit) {
  const int64_t all = rows.at(0).dim(0);
  for (int64_t first = 0; first < all; first += rows_together) {
    std::vector<Tensor> some;
    for (const Tensor& tensor : rows)
      some.push_back(rows_of(tensor, first, std::min(rows_together, all - first)));
    std::map<NodeId, std::vector<float>> wanted;
    std::map<NodeId, size_t> done;
    observe_nodes(reference, some, nodes, [&](NodeId id, const Tensor& result) {
      const Tensor values = result.to(DType::f32);
      const auto span = values.values<float>();
      wanted[id].insert(wanted[id].end(), span.begin(), span.end());
    });
    observe_nodes(graph, some, nodes, [&](NodeId id, const Tensor& result) {
      const Tensor values = result.to(DType::f32);
      const std::vector<float>& other = wanted.at(id);
      size_t& at = done[id];
      MASE_CHECK(at + static_cast<size_t>(values.numel()) <= other.size(), "{} results of node {}",
                 values.numel(), id);
      for (int64_t i = 0; i < values.numel(); ++i)
        visit(id, values.shape(), i, other[at + static_cast<size_t>(i)], values.data<float>()[i]);
      at += static_cast<size_t>(values.numel());
    });
  }
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
                    const std::vector<Tensor>& rows) {
  double error = 0, power = 0;
  visit_pairs(reference, graph, nodes, rows,
              [&](NodeId, const Shape&, int64_t, double wanted, double found) {
                error += (found - wanted) * (found - wanted);
                power += wanted * wanted;
              });
  return power > 0 ? error / power : error;
}

std::vector<double> channel_bias(const Graph& reference, const Graph& graph, NodeId node,
                                 int64_t axis, const std::vector<Tensor>& rows) {
  std::vector<double> sums, counts;
  visit_pairs(reference, graph, {node}, rows,
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

double largest_change(const Graph& first, const Graph& second, const std::vector<Tensor>& rows) {
  double most = 0, largest = 0;
  visit_pairs(first, second, first.outputs(), rows,
              [&](NodeId, const Shape&, int64_t, double wanted, double found) {
                most = std::max(most, std::fabs(found - wanted));
                largest = std::max(largest, std::fabs(wanted));
                if (std::isnan(found) != std::isnan(wanted)) most = INFINITY;
              });
  return largest > 0 ? most / largest : most;
}

}  // namespace mase
