// SPDX-License-Identifier: Apache-2.0
// From an integer graph to a folder of SystemVerilog with everything around it. Emitters are
// records; what they share (testbench, make file, manifest) is made from the ports they say they
// have.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/base/schema.h"
#include "mase/hardware/graph/integer_graph.h"
#include "mase/hardware/optimize/optimize.h"

namespace mase {

// Files by path inside the emitted folder.
using EmittedFiles = std::map<std::string, std::string>;

struct EmitOptions {
  std::string top = "top";
  Value values = {};         // of the emitter's own schema, defaults filled in
  bool table_cells = false;  // tables are cells of the target
};

// What a design costs by a model.
struct Estimate {
  double luts = 0, levels = 0, delay_ns = 0;
  int64_t registers = 0, dsps = 0;
  int64_t memory_bits = 0;  // rows, lines and weights, in look-up tables or blocks as tools choose
  bool timed = true;        // levels and delay are known
  std::string method = "the optimised graph";
  double error = 0.15;  // how far LUTs were from Yosys's, as a share, on designs not fitted to
  struct Layer {
    std::string name;
    double luts = 0, levels = 0;
    int64_t adders = 0;
  };
  std::vector<Layer> layers;
};

// A module whose text is a graph, node by node: what can be proved of a design.
struct GraphModule {
  std::string name;
  IntegerGraph graph;
  std::vector<std::string> signals;  // the wire of every node
  int latency = 0;
  bool valid = false;
  std::string target = {};  // whose cells it is made of; empty: of none
  // What it was made from, nothing optimised; none: the graph itself.
  std::optional<IntegerGraph> network = {};
};

struct EmittedDesign {
  EmittedFiles files;
  int latency = 0;       // clock cycles from an input to its output; 0: no clock
  int64_t interval = 1;  // clock cycles from a row to the next
  bool clocked = false;
  bool valid = false;
  // Bits of the packed input and output vectors, codes side by side, the first one lowest; and of
  // every code where they are all alike, 0 where each is as wide as its interval.
  int input_bits = 0, output_bits = 0;
  int input_element = 0, output_element = 0;
  // Which of the graph's inputs and outputs stands at each place of those vectors; empty: its own
  // order.
  std::vector<int> input_order = {}, output_order = {};
  Dict facts = {};                        // for the manifest
  std::optional<Estimate> estimate = {};  // where the graph's own costs do not say it
  // What the text was written from, where that is not the graph itself: output codes of rows of
  // input codes.
  std::function<std::vector<int64_t>(const std::vector<int64_t>& rows)> run = {};
  bool cells = false;                // has instances of its target's modules
  std::vector<std::string> signals;  // of every node, for read-back; empty: it is not one graph
  std::vector<GraphModule> modules = {};  // those of its modules that are one
};

struct EmitterRecord {
  static constexpr const char* kind = "style";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  std::string help = {};
  Schema schema = {};
  bool as_lowered = false;  // wants the network's own sums, nothing shared, no registers
  // What is done to the lowered graph first; empty: optimize().
  std::function<Optimized(const IntegerGraph& graph, const EmitOptions& options)> optimize = {};
  std::function<EmittedDesign(const IntegerGraph& graph, const EmitOptions& options)> emit;
};

// Every node of the graph a signal of one module, which styles may share. Their option `valid`: a
// valid bit travels along.
EmittedDesign emit_unrolled(const IntegerGraph& graph, const EmitOptions& options);
Field valid_field();

// The testbench: reads codes from vectors.hex through the simulator's own file functions, compares
// every output and says how many rows differ.
std::string testbench_text(const EmittedDesign& design, const std::string& top);
// The same for designs with valid and ready: elements enter and leave `in` and `out` at a time,
// both sides stall at random, and what is valid must stay until it is taken. With the argument
// +nostall nothing stalls.
struct StreamShape {
  int in = 1, inputs = 1, out = 1, outputs = 1;
};
std::string stream_testbench_text(const EmittedDesign& design, const std::string& top,
                                  const StreamShape& shape);
// One line a row: all input codes packed, then all output codes, in hexadecimal.
std::string vectors_text(const IntegerGraph& graph, const EmittedDesign& design,
                         const std::vector<int64_t>& inputs, const std::vector<int64_t>& outputs);
// The same function in C++ without dependencies.
std::string cpp_header_text(const IntegerGraph& graph, const std::string& name);
// A program that compares that header with the rows of vectors.hex.
std::string cpp_check_text(const IntegerGraph& graph, const EmittedDesign& design,
                           const std::string& name);

}  // namespace mase
