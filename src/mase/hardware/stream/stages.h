// SPDX-License-Identifier: Apache-2.0
// A network as stages that pass values on, for hardware that computes a layer in several clock
// cycles:
//   x -> W0 x + c0 -> f0 -> W1 . + c1 -> f1 -> ... -> y
// with whole weights, whole constants, and functions of one sum each (rounding, ReLU, limits,
// tables). A stage over windows does so at every position of a plane, from the window around it, or
// takes the largest value of each window and channel. A stage may read two others, position by
// position (a skip connection: windows of one position over the channels of both), and several may
// read one. Found in a lowered integer graph; what has another form is refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mase/hardware/graph/integer_graph.h"

namespace mase {

// Bits of every element of a vector of codes: as many as the widest needs.
struct ElementType {
  int width = 1;
  bool is_signed = false;
  IntegerRange range() const;  // of all its codes
};

// What a stage reads of each position of another one's results, or of the network's inputs.
struct StreamSource {
  int stage = -1;            // none: the inputs
  int first = 0, count = 0;  // elements, side by side

  bool operator==(const StreamSource&) const = default;
};

struct StreamStage {
  std::string name;
  std::vector<StreamSource> sources;  // one, or two side by side
  // All outputs of a position are given at once: those of planes, and what several read.
  bool whole = false;
  ElementType in, out;
  // Windows slide over a plane, whose positions come in raster order with all channels of one side
  // by side. Elements of a window: its taps row by row, the channels of each.
  std::optional<IntegerGraph::Sliding> windows = {};
  bool largest = false;  // of every channel's window; no weights then
  // [in][out], of a vector, or of a window; the same at all positions.
  std::vector<std::vector<int64_t>> weights;
  std::vector<int64_t> constants;  // [out]
  std::vector<int> functions;      // of every output: index into `graphs`
  // Functions of one sum, each with one input that covers the sums of all outputs that have it.
  std::vector<IntegerGraph> graphs;
  int frac_in = 0, frac_out = 0;  // where all features agree, else the largest

  int inputs() const;                                                 // of a vector, or of a window
  int outputs() const { return static_cast<int>(functions.size()); }  // of a vector or a position
  int channels() const;                                               // of a position before it
  int64_t positions() const;                                          // of the plane before it
  int64_t results() const;                                            // of the plane behind it
  int64_t row_inputs() const { return windows ? positions() * channels() : inputs(); }
  int64_t row_outputs() const { return results() * outputs(); }
  int weight_width() const;  // two's complement
  int sum_width() const;     // two's complement of any partial sum
};

// Stages, and which of the graph's inputs and outputs come at each place of a row's elements.
struct StreamNetwork {
  std::vector<StreamStage> stages;  // the last one's results are the network's
  std::vector<int> input_order, output_order;
  int channels = 0;           // of a position of the inputs
  bool whole_inputs = false;  // several stages read them: a position comes at once
};
// Of one that is read, the stages that read it and which of their sources it is.
std::vector<std::pair<size_t, size_t>> readers_of(const std::vector<StreamStage>& stages,
                                                  int source);
StreamNetwork stream_network(const IntegerGraph& graph);

// Output codes of rows of input codes, in the graph's order, by the stages' own weights, constants
// and functions.
std::vector<int64_t> run_stages(const StreamNetwork& network, const std::vector<int64_t>& rows);

}  // namespace mase
