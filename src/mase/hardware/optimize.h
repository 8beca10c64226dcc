// SPDX-License-Identifier: Apache-2.0
// Optimisers of integer graphs. Each takes a graph and gives one with the same outputs for all
// inputs; a trace says what each of them saved.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mase/hardware/integer_graph.h"

namespace mase {

struct OptimizeOptions {
  int effort = 1;  // of the search for shared additions, see cmvm.h
  uint64_t seed = 0;
  double delay_weight = 8;  // how much a late result counts, see cmvm.h
  // Neurons that read few bits may become truth tables. Off: the read-back, which knows sums by
  // their linear forms, refused one learned design with tables, though all its rows were right.
  bool tables = false;
};

bool is_adder(const IntegerNode& node);

// Costs by the records' own models: 6-input tables, and levels of logic of the longest path.
struct GraphCost {
  double luts = 0;
  double levels = 0;
  int64_t registers = 0;
  int64_t adders = 0;
  int64_t adder_bits = 0;
  double table_luts = 0;  // of `luts`
};
GraphCost cost_of(const IntegerGraph& graph);
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
IntegerGraph share_additions(const IntegerGraph& graph, const OptimizeOptions& options);
// Of the neurons that read few bits those become tables that are cheaper so than all that the
// optimised graph has for them alone.
IntegerGraph tables_where_cheaper(const IntegerGraph& graph, const IntegerGraph& optimized);
// Nodes that read the same and do the same are one.
IntegerGraph merge_equal(const IntegerGraph& graph);

}  // namespace mase
