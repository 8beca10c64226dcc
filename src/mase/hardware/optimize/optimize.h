// SPDX-License-Identifier: Apache-2.0
// Optimisers of integer graphs. Each takes a graph and gives one with the same outputs for all
// inputs; a trace says what each of them saved.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "mase/hardware/optimize/cmvm.h"

namespace mase {

struct OptimizeOptions {
  int effort = 1;  // of the search for shared additions, see cmvm.h
  uint64_t seed = 0;
  // How much a late result counts, see cmvm.h; nothing: some weights are tried, and the graph with
  // the smallest product of LUTs and the root of its levels is kept.
  std::optional<double> delay_weight = {};
  bool tables = true;         // neurons that read few bits may become truth tables
  bool carry_chains = false;  // sums become explicit chains at the end
};

bool is_adder(const IntegerNode& node);
// Adders of two operands that it is made of; a sum as it was lowered counts those of its digits.
int64_t adder_count(const IntegerNode& node);

// Costs by the records' own models: 6-input tables, and levels of logic of the longest path.
struct GraphCost {
  double luts = 0;
  double levels = 0;
  int64_t registers = 0;
  int64_t adders = 0;
  int64_t adder_bits = 0;
  double adder_luts = 0;  // by the calibration
  double table_luts = 0;  // of `luts`
};
GraphCost cost_of(const IntegerGraph& graph);
// How many of every node's lowest bits something reads: a value that wraps behind it needs no more
// than it keeps, and synthesis drops the rest.
std::vector<int> bits_read(const IntegerGraph& graph);
// The record's look-up tables of a node of which so many bits are read.
double node_luts(const IntegerGraph& graph, const IntegerNode& node, int bits);
std::vector<GraphCost> cost_by_layer(const IntegerGraph& graph);
// When every node's value is there, in levels; registers begin anew.
std::vector<double> arrival_times(const IntegerGraph& graph);

struct OptimizeStep {
  std::string pass;
  GraphCost before, after;
};
struct Optimized {
  IntegerGraph graph;
  std::vector<OptimizeStep> trace;
};

// All of them, in the order that pays.
Optimized optimize(const IntegerGraph& graph, const OptimizeOptions& options = {});

// floor(relu(a) + c)  =>  relu(floor(a + c))  where c is less than what is dropped: the rounding
// constant joins the bias, and the relu has fewer bits.
IntegerGraph merge_rounding(const IntegerGraph& graph);
// Every sum of multiples that something else reads is built anew from shared additions, its
// constant hidden in the carries of its own adders where they allow it.
IntegerGraph share_additions(const IntegerGraph& graph, const CmvmOptions& options);
// What one try at that takes: the squares of the signed digits of every such sum.
double sharing_work(const IntegerGraph& graph);
// Of the neurons that read few bits those become tables that are cheaper so than all that the
// optimised graph has for them alone.
IntegerGraph tables_where_cheaper(const IntegerGraph& graph, const IntegerGraph& optimized);
// Nodes that read the same and do the same are one.
IntegerGraph merge_equal(const IntegerGraph& graph);

}  // namespace mase
