// SPDX-License-Identifier: Apache-2.0
// Numbers whose bits are functions of other bits: what operations on integers mean, bit by bit, for
// all values at once. Meanings are said with these words, and held to what a netlist does.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "mase/hardware/verify/decision_diagram.h"

namespace mase {

// Two's complement, or plain binary; the lowest bit first.
struct LogicWord {
  std::vector<Decision> bits;
  bool is_signed = false;
};

class BitLogic {
 public:
  DecisionDiagram& diagram() { return diagram_; }

  LogicWord constant(int64_t value) const;
  LogicWord extended(const LogicWord& a, size_t width) const;  // its lowest bits, if it has more
  LogicWord sliced(const LogicWord& a, size_t from) const;     // divided by 2^from, rounded down
  Decision sign(const LogicWord& a) const;
  Decision any(const LogicWord& a);
  Decision less(const LogicWord& a, const LogicWord& b);
  LogicWord choose(Decision when, const LogicWord& a, const LogicWord& b);
  LogicWord sum(const LogicWord& a, const LogicWord& b);
  LogicWord negated(const LogicWord& a);
  LogicWord limited(const LogicWord& a, int64_t low, int64_t high);
  // Whether a lies in [low, high].
  Decision within(const LogicWord& a, int64_t low, int64_t high);

 private:
  LogicWord with_sign(const LogicWord& a, size_t width) const;
  LogicWord added(const LogicWord& a, const LogicWord& b, bool inverse);

  DecisionDiagram diagram_;
};

}  // namespace mase
