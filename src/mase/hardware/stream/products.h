// SPDX-License-Identifier: Apache-2.0
// The sums of one window as hardware with its weights inside: a graph that is given so many bits
// of every element at once, the highest first, and whose results are added up digit by digit:
//   sum = (((c + s0) 2^d + s1) 2^d + ...)       with s_t = W x_t,  x = x0 2^(d(T-1)) + ... + x_T-1
// One digit is the whole product; single bits make each six elements one look-up table (distributed
// arithmetic, Croisier et al., 1973).
#pragma once

#include <cstdint>
#include <vector>

#include "mase/hardware/stream/stages.h"

namespace mase {

struct WindowProducts {
  IntegerGraph graph;  // inputs: a digit of every element; outputs: W of it, for every output
  int digits = 1, digit_bits = 1;
  // Digits are those of x + 2^(width-1) where elements are signed; the constants know it.
  bool offset = false;
  std::vector<int64_t> constants;  // to start from; of one digit, the graph has them
  double luts = 0;                 // by the model of graphs, with the choice of digits and the sums
  bool tables = false;             // groups of six bits are tables
};
// The cheapest that takes at most so many clock cycles for a window.
WindowProducts window_products(const StreamStage& stage, int64_t cycles);

}  // namespace mase
