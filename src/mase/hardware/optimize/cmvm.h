// SPDX-License-Identifier: Apache-2.0
// Constant matrix-vector products as graphs of shared additions: y[o] = sum over i of W[i][o] x[i]
// with shifts, which are wiring, additions and subtractions only.
//
// Every weight is written in signed digits; pairs of terms that several outputs have in common are
// computed once, dearest pair first (Hartley, 1996; Potkonjak et al., 1996). Pairs are weighed by
// the bits they really save, with intervals from exact linear forms. Restarts try other weights of
// the score, disturbed ones, and other signed digits. Same problem, seed and effort: same graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mase/hardware/graph/integer_graph.h"

namespace mase {

struct CmvmProblem {
  std::vector<IntegerRange> inputs;
  std::vector<std::vector<int64_t>> weights;  // [in][out]
  std::vector<double> arrival = {};           // of the inputs, in levels; empty: all 0
};

struct CmvmOptions {
  int effort = 1;  // 0: one try; each step above 1 doubles the number of tries
  uint64_t seed = 0;
  double delay_weight = 0;  // how much a late result counts against one of more bits
  double budget = 4e6;      // squares of columns' digits that tries of effort 1 may have in all
};

// Operand numbers below the number of inputs are inputs, others are adders in order.
struct AdderGraph {
  struct Adder {
    int a = 0, b = 0;
    int shift_a = 0, shift_b = 0;  // one of them is 0
    bool subtract = false;
    IntegerRange range = {};
    double arrival = 0;
  };
  struct Output {
    int node = -1;  // -1: always zero
    int shift = 0;
    bool negative = false;
  };
  std::vector<Adder> adders;
  std::vector<Output> outputs;
  int64_t bits = 0;    // of all carry chains
  double arrival = 0;  // of the latest output
};

// Bits of the carry chain of a 2^shift_a +- b 2^shift_b with this result; 0 if nothing overlaps.
int chain_bits(const IntegerRange& a, int shift_a, const IntegerRange& b, int shift_b,
               bool subtract, const IntegerRange& result);
// Levels of logic that a chain adds to a path. A chain behind another one ripples along with it, so
// its width counts less than its presence.
double chain_delay(int bits);

AdderGraph solve_cmvm(const CmvmProblem& problem, const CmvmOptions& options = {});

// Every output's linear form rebuilt from the adders and compared with W; intervals too. An empty
// text, or what differs.
std::string check_cmvm(const CmvmProblem& problem, const AdderGraph& graph);

// "n_in n_out", then lo and hi of every input, then W by rows.
CmvmProblem cmvm_from_text(const std::string& text, const std::string& place);

}  // namespace mase
