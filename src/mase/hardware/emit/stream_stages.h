// SPDX-License-Identifier: Apache-2.0
// A network as layers one after another, for hardware that computes a layer in several clock
// cycles:
//   x -> W0 x + c0 -> f0 -> W1 . + c1 -> f1 -> ... -> y
// with whole weights, whole constants, and functions of one sum each (rounding, ReLU, limits,
// tables). Found in a lowered integer graph; what has another form is refused.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "mase/hardware/graph/integer_graph.h"

namespace mase {

// Bits of every element of a vector of codes: as many as the widest needs.
struct ElementType {
  int width = 1;
  bool is_signed = false;
};

struct StreamStage {
  std::string name;
  ElementType in, out;
  std::vector<std::vector<int64_t>> weights;  // [in][out]
  std::vector<int64_t> constants;             // [out]
  std::vector<int> functions;                 // of every output: index into `graphs`
  // Functions of one sum, each with one input that covers the sums of all outputs that have it.
  std::vector<IntegerGraph> graphs;
  int frac_in = 0, frac_out = 0;  // where all features agree, else the largest

  int inputs() const { return static_cast<int>(weights.size()); }
  int outputs() const { return static_cast<int>(constants.size()); }
  int weight_width() const;  // two's complement
  int sum_width() const;     // two's complement of any partial sum
};

std::vector<StreamStage> stream_stages(const IntegerGraph& graph);

// Output codes of rows of input codes, by the stages' own weights, constants and functions.
std::vector<int64_t> run_stages(const std::vector<StreamStage>& stages,
                                const std::vector<int64_t>& rows);

// How many elements pass each boundary at once: before the first stage, between stages, after the
// last. A stage takes (inputs / before) * (outputs / after) clock cycles for a row.
struct StreamPlan {
  std::vector<int> parallelism;
  std::vector<int64_t> cycles;  // of each stage
  int64_t interval = 0;         // cycles between rows: the slowest stage's
  int64_t latency = 0;          // from a row's first beat to its last result, nothing stalled
  double area = 0;              // what it was chosen by: multipliers, sums and tables of weights
  double luts = 0;              // what Yosys makes of it, by a model
  int64_t dsps = 0;             // products that it puts into multiplier blocks
  int64_t registers = 0;        // bits; rows that wait are in memories of look-up tables
};
// The cheapest that takes a row every `cycles` clock cycles; an error if none does.
StreamPlan plan_stream(const std::vector<StreamStage>& stages, int64_t cycles);

}  // namespace mase
