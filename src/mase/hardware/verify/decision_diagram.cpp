// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/verify/decision_diagram.h"

#include <algorithm>
#include <climits>
#include <utility>

namespace mase {
namespace {

constexpr size_t most_nodes = 1 << 20;

// Nodes and variables fit: 27 bits and 10.
uint64_t diagram_key(uint64_t first, Decision a, Decision b) {
  return first << 54 | static_cast<uint64_t>(a) << 27 | static_cast<uint64_t>(b);
}

}  // namespace

DecisionDiagram::DecisionDiagram() : nodes_{{INT_MAX, 0, 0}, {INT_MAX, 1, 1}} {}

Decision DecisionDiagram::variable(int index) {
  if (index >= 1 << 10) full_ = true;
  return full_ ? never : node(index, never, always);
}

Decision DecisionDiagram::node(int variable, Decision low, Decision high) {
  if (low == high) return low;
  const auto [entry, fresh] =
      known_.try_emplace(diagram_key(static_cast<uint64_t>(variable), low, high),
                         static_cast<Decision>(nodes_.size()));
  if (fresh) nodes_.push_back({variable, low, high});
  if (nodes_.size() >= most_nodes) full_ = true;
  return entry->second;
}

Decision DecisionDiagram::apply(Connective operation, Decision a, Decision b) {
  if (full_) return never;
  if (a > b) std::swap(a, b);  // both are symmetric
  if (a == b) return operation == Connective::both ? a : never;
  if (a == never) return operation == Connective::both ? never : b;
  if (operation == Connective::both && a == always) return b;
  const uint64_t key = diagram_key(static_cast<uint64_t>(operation), a, b);
  if (const auto found = results_.find(key); found != results_.end()) return found->second;
  const Node x = nodes_[static_cast<size_t>(a)], y = nodes_[static_cast<size_t>(b)];
  const int top = std::min(x.variable, y.variable);
  const Decision low =
                     apply(operation, x.variable == top ? x.low : a, y.variable == top ? y.low : b),
                 high = apply(operation, x.variable == top ? x.high : a,
                              y.variable == top ? y.high : b);
  const Decision result = node(top, low, high);
  results_.emplace(key, result);
  return result;
}

bool DecisionDiagram::value(Decision a, const std::vector<bool>& variables) const {
  while (a > always) {
    const Node& at = nodes_[static_cast<size_t>(a)];
    a = variables[static_cast<size_t>(at.variable)] ? at.high : at.low;
  }
  return a == always;
}

std::vector<bool> DecisionDiagram::example(Decision a, int variables) const {
  std::vector<bool> result(static_cast<size_t>(variables), false);
  while (a > always) {
    const Node& at = nodes_[static_cast<size_t>(a)];
    const bool high = at.low == never;  // every other node leads to true
    result[static_cast<size_t>(at.variable)] = high;
    a = high ? at.high : at.low;
  }
  return result;
}

}  // namespace mase
