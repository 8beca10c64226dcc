// SPDX-License-Identifier: Apache-2.0
// When the bits of a value are there, by the cells of an FPGA: a look-up table is a level, and so
// is every block of four bits of a carry chain.
#pragma once

#include "mase/hardware/graph/integer_graph.h"

namespace mase {

// Bits from..to-1 of operand * 2^low: zeros below it, its sign above it.
BitTimes moved_bits(const BitTimes& bits, bool is_signed, int low, int from, int to);
// The same bits later by nothing: wiring that takes bits from `from` on.
BitTimes sliced_bits(const IntegerContext& context, const BitTimes& bits, int from);
// The sum bits of a carry chain over two operands' bits.
BitTimes chain_times(const BitTimes& a, const BitTimes& b);

// When every node's last bit is there; registers begin anew. The longest path of a design has a
// cell at each of its two pins besides.
std::vector<double> last_bit_times(const IntegerGraph& graph);
inline constexpr double pin_levels = 2;

}  // namespace mase
