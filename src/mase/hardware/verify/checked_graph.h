// SPDX-License-Identifier: Apache-2.0
// The integer graph as the checker reads it from its text: nodes in order, each a whole number in
// an interval. This folder is a program of its own for everything that is to be believed: it reads
// files (the graph's text, the certificate, what Yosys writes) and shares nothing with lowering,
// optimisers and emitters, not even what the operations mean (meanings.cpp).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

namespace mase {

struct Interval {
  int64_t low = 0, high = 0;

  bool operator==(const Interval&) const = default;
  bool contains(const Interval& other) const { return low <= other.low && other.high <= high; }
  bool is_signed() const { return low < 0; }
  int width() const;  // bits of two's complement, or of plain binary from zero up; 0: always zero
};

using CheckedId = int32_t;
struct Meaning;

struct CheckedNode {
  const Meaning* op = nullptr;  // none: an input
  std::vector<CheckedId> inputs = {};
  std::vector<int64_t> numbers = {};
  Interval range = {};
  int64_t frac = 0;
};

struct CheckedGraph {
  std::vector<CheckedNode> nodes;  // operands before users
  std::vector<CheckedId> inputs, outputs;

  const CheckedNode& at(CheckedId id) const { return nodes[static_cast<size_t>(id)]; }
  int wire_width(CheckedId id) const;  // at least one bit
};

// Throws an Error that names the line: unknown operations, operands that are not there, numbers
// that mean nothing, an interval that some values of the operands leave.
CheckedGraph read_checked_graph(const std::string& text, const std::string& place);

// What a node is as a sum of multiples of nodes that are no sums, and a constant.
struct CheckedForm {
  std::vector<std::pair<CheckedId, int64_t>> terms;  // by rising node, no zero factors
  int64_t constant = 0;
};
// Of every node after another; a form is kept as long as a later one is built from it. Numbers
// beyond 64 bits are an Error.
void visit_forms(const CheckedGraph& graph,
                 const std::function<void(size_t node, const CheckedForm& form)>& visit);
Interval interval_of(const CheckedForm& form, const CheckedGraph& graph);

int64_t exact_product(int64_t a, int64_t b);
int64_t exact_sum(int64_t a, int64_t b);

}  // namespace mase
