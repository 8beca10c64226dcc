// SPDX-License-Identifier: Apache-2.0
// What can be taken away from the edges of a network of tables: the lowest bit that an edge reads,
// the lowest bit of what it gives, the edge. Each move is priced by the look-up tables that it
// saves where sums are explicit carry chains, and by what it adds to the loss to the second order.
#pragma once

#include <cstdint>
#include <vector>

#include "mase/train/tables/table_trainer.h"

namespace mase {

struct TableMove {
  enum class Kind : uint8_t { input_bit, output_bit, edge };
  size_t layer = 0;
  int64_t in = 0, out = 0;
  Kind kind = Kind::edge;
  double loss = 0;   // added, over all rows
  double saved = 0;  // look-up tables
  double shift = 0;  // what the sum loses in the mean; its constant takes that over
};

// Look-up tables of an edge whose values take so many bits: an adder takes a table of at most five
// bits in for nothing.
double edge_cost(int bits, int value_bits);
double table_cost(const TableNetwork& network);

// All moves, the ones that cost least for what they save first.
std::vector<TableMove> table_moves(const TableNetwork& network,
                                   const std::vector<std::vector<float>>& curvature);
// The first of them that save `share` of the network's cost, one for each edge at most. What was
// saved; 0: there are none.
double apply_moves(TableNetwork& network, const std::vector<TableMove>& moves, double saved);

}  // namespace mase
