// SPDX-License-Identifier: Apache-2.0
// Pieces of SystemVerilog. All signals are plain vectors; signs are extended by concatenation and
// bits taken by constant slices: there are no signed types and no shift operators, whose rules
// tools disagree about.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "mase/hardware/graph/integer_graph.h"

namespace mase {

// 6'd13: the value's bits in a vector as wide as the range says, at least one.
std::string literal(int64_t value, const IntegerRange& range);
std::string literal_bits(int64_t value, int width);

// Bits from to to-1 of operand * 2^low, sign or zeros above it and zeros below.
std::string extended(const VerilogOperand& operand, int low, int from, int to);

// "[7:0] " before a name; "" for one bit.
std::string vector_range(int width);

// The same for vectors that are cut into pieces: "[0:0] " for one bit, which has parts as well.
std::string sliced_range(int width);

// A name that SystemVerilog takes: letters, digits and underscores, no keyword.
std::string verilog_name(std::string_view name);

// The sign bit of an operand: "x[7]", or "1'b0" if it has none.
std::string sign_bit(const VerilogOperand& operand);

}  // namespace mase
