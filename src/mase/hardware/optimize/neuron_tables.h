// SPDX-License-Identifier: Apache-2.0
// Neurons as truth tables. A neuron is everything between the results of one layer and a result of
// the next; one that reads few bits can be a table of all their values instead of a sum. Values
// that its operands never have are free: they are chosen so that tables need fewer inputs.
#pragma once

#include <string>
#include <vector>

#include "mase/hardware/graph/integer_graph.h"

namespace mase {

// Which nodes are results of layers: what is no sum and is read by one, and the outputs.
std::vector<char> layer_results(const IntegerGraph& graph);

struct NeuronCone {
  IntegerId result = -1;
  std::vector<IntegerId> operands;  // results and inputs it reads, by rising number
  int bits = 0;                     // of all of them
};
std::vector<NeuronCone> neuron_cones(const IntegerGraph& graph);

// The same function with these neurons as tables. Every table is computed for all values of its
// operands that can occur.
IntegerGraph with_neuron_tables(const IntegerGraph& graph, const std::vector<NeuronCone>& cones);

// What one of them would cost as a table, whatever its operands are.
double neuron_table_luts(const IntegerGraph& graph, const NeuronCone& cone);

// 6-input tables for a function of all entries, whose number is a power of two: one for each bit
// that depends on at most six bits of the index, else a tree of different parts.
double table_luts(const std::vector<int64_t>& entries, int width);

}  // namespace mase
