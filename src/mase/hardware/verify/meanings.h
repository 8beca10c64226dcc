// SPDX-License-Identifier: Apache-2.0
// What operations of integer graphs mean, said once more and apart from those that lower, optimise
// and emit them: for one row, for intervals, and for all values of some bits at once. A sum says
// its factors, and everything else follows.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "mase/hardware/verify/bit_logic.h"
#include "mase/hardware/verify/checked_graph.h"

namespace mase {

struct SumMeaning {
  std::vector<int64_t> factors;  // one for each operand
  int64_t constant = 0;
};

struct Meaning {
  std::string name;
  int operands = 1;                       // -1: any number
  std::vector<std::string> numbers = {};  // as the text names them
  bool more_numbers = false;

  // What is wrong with a node's numbers; its operands' intervals are known.
  std::function<std::string(const CheckedNode&, const std::vector<Interval>&)> wrong = {};
  // Of sums: all that is below follows from it.
  std::function<SumMeaning(const CheckedNode&)> sum = {};
  std::function<int64_t(const int64_t* operands, const CheckedNode&)> value = {};
  // Contains all values for operands in these intervals.
  std::function<Interval(const CheckedNode&, const std::vector<Interval>&)> interval = {};
  // Empty: all values of the operands have to be tried.
  std::function<LogicWord(const CheckedNode&, BitLogic&, const std::vector<LogicWord>&)> logic = {};

  bool is_slice = false;  // floor and wrap: bits of the operand and nothing else
};

const Meaning* find_meaning(const std::string& name);
const std::vector<Meaning>& all_meanings();

int64_t value_of(const CheckedNode& node, const int64_t* operands);
Interval interval_of(const CheckedNode& node, const std::vector<Interval>& operands);
LogicWord logic_of(const CheckedNode& node, BitLogic& logic,
                   const std::vector<LogicWord>& operands);

}  // namespace mase
