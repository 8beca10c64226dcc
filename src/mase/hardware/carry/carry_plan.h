// SPDX-License-Identifier: Apache-2.0
// How a sum of two or three numbers and a constant lies on a carry chain of an FPGA whose cells are
// six-input tables in front of it: what every bit of the chain is made of.
//   y = constant + f[0] x[0] + f[1] x[1] (+ f[2] x[2])      f[k] = +-2^shift[k]
// No sign is ever extended: a number of w bits enters as the plain number of w bits that it is with
// its highest bit turned over (x + 2^(w-1)) or, subtracted, with its other bits turned over, which
// the tables do for nothing; what that adds is taken off the constant. The constant enters by
// carries, which are free, and as single ones where fewer than three numbers have bits.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "mase/hardware/graph/integer_graph.h"

namespace mase {

inline constexpr size_t most_chain_operands = 3;

// A number as its bits enter: +-x + offset, a plain number of `width` bits at `shift`.
struct CarryOperand {
  int shift = 0, width = 0;
  bool is_signed = false, negative = false;

  CarryOperand(const IntegerRange& range, int64_t factor);
  int64_t offset() const;
  int top() const { return shift + width; }
  bool has(int bit) const { return bit >= shift && bit < top(); }
  // Whether this bit enters turned over.
  bool inverts(int bit) const { return negative != (is_signed && bit == top() - 1); }
};

struct CarryBit {
  // below: wiring. plain: at most two bits, one of them handed on where they are equal.
  // compressed: up to three bits and what three bits below left over.
  enum class Kind : uint8_t { below, plain, compressed };
  Kind kind = Kind::below;
  bool one = false;    // the constant has a one here
  bool keeps = false;  // compressed: something is left over for the next bit
  bool table = false;  // takes a look-up table
};

struct CarryPlan {
  std::vector<CarryBit> bits;
  int first = 0;              // where the chain begins
  bool carry_first = false;   // into the chain
  int second = 0;             // where compression begins
  bool carry_second = false;  // into it
  int tables = 0;
};

// The cheapest way for a result of `width` bits; nothing if the constant has no place.
std::optional<CarryPlan> carry_plan(std::span<const CarryOperand> operands, int64_t constant,
                                    int width);
// Of a node `chain`.
std::vector<CarryOperand> carry_operands(const IntegerContext& context);
CarryPlan carry_plan(const IntegerContext& context);

}  // namespace mase
