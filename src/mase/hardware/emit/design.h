// SPDX-License-Identifier: Apache-2.0
// A design: an integer graph optimised, pipelined, emitted in a style, with everything that goes
// into its folder; and what the tools say about such a folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mase/hardware/emit/emitter.h"
#include "mase/hardware/graph/integer_graph.h"
#include "mase/hardware/optimize/optimize.h"
#include "mase/hardware/verify/check_module.h"

namespace mase {

struct DesignOptions {
  std::string style = "unrolled";
  std::string target = "generic";
  std::string top = "top";
  int effort = 1;
  uint64_t seed = 0;
  std::optional<double> delay_weight = {};  // how much late results count, see optimize.h
  double levels = 0;                        // of logic between registers; 0: no registers
  bool argmax = false;                      // the class instead of the outputs
  Value style_options = {};                 // of the style's own schema
};

struct Design {
  IntegerGraph graph;  // as emitted
  // As lowered, with what finds the class; none: the emitted one is it.
  std::optional<IntegerGraph> network = {};
  std::vector<OptimizeStep> trace;
  EmittedDesign emitted;
  DesignOptions options;
};
Design make_design(const IntegerGraph& lowered, const DesignOptions& options);
// Whether make_design refuses to unroll it.
bool is_too_large(const IntegerGraph& lowered);

// Rows for the testbench: codes of inputs, and what the interpreter makes of them.
struct DesignRows {
  std::vector<int64_t> inputs, outputs;
  std::string origin;  // what they are: "4000 test rows of jets20k"
};
// Rows drawn evenly over all input codes, extremes first; outputs by the interpreter.
DesignRows random_rows(const IntegerGraph& graph, size_t count, uint64_t seed);
DesignRows rows_of(const IntegerGraph& graph, std::vector<int64_t> inputs, std::string origin);

// Holds what was optimised, pipelined and emitted to the lowered graph on these rows and on drawn
// ones over all input codes; a difference is our mistake and an InternalError that names the row.
// How many rows these were.
size_t hold_to_lowered(const Design& design, const IntegerGraph& lowered, const DesignRows& rows);

// The modules of a design that are graphs, for its certificate.
std::vector<GraphModule> graph_modules(const Design& design);
// All files of the folder. `facts` goes into manifest.json beside what is known here.
EmittedFiles design_files(const Design& design, const DesignRows& rows, const Dict& facts);
// Written beside, then renamed: there is the whole folder or none. An old folder is replaced only
// if it is one of ours (it has a manifest.json).
void write_design(const std::string& folder, const EmittedFiles& files);

// Has Yosys read rtl/TOP.sv, and proves it to be the graph and this to be the network. Needs the
// folder.
ModuleProof prove_folder(const Design& design, const std::string& folder);

struct Simulation {
  std::string simulator;
  int64_t rows = 0, mismatches = 0;
  double build_seconds = 0, run_seconds = 0;
  std::string output;
};
// For so many rows, each of which comes in one clock cycle (one that takes 784 counts as many), of
// a design whose sources have so many bytes.
std::string quicker_simulator(int64_t rows, int64_t bytes);
// What was found is also written to FOLDER/simulation.json (cpp_check.json, synthesis.json), for
// its page. `simulator`: "iverilog", "verilator", "auto" (the quicker one), or "cpp": the C++
// header instead of the SystemVerilog. `dump`: a waveform file to write, or empty. `most`: the
// first so many rows only; 0: all.
Simulation simulate_folder(const std::string& folder, const std::string& simulator,
                           const std::string& dump, int64_t most = 0);

struct Synthesis {
  std::string flow;  // "synth_xilinx -family xcup -flatten"
  int64_t luts = 0, carries = 0, inverters = 0, muxes = 0, registers = 0;
  int64_t dsps = 0, memories = 0;  // multiplier blocks; memories of look-up tables (eight each)
  double blocks = 0;               // memory blocks of 36 kbit
  int64_t shifts = 0;              // shift registers, a look-up table each
  int64_t levels = 0;
  double seconds = 0;
};
Synthesis synthesize_folder(const std::string& folder);
Value to_value(const Simulation& simulation);
Value to_value(const Synthesis& synthesis);

// What the graph costs by the model, calibrated on synthesis results (estimate.cpp).
Estimate estimate(const IntegerGraph& graph);
// The same of a design, whose style may know better.
Estimate estimate(const Design& design);
Value to_value(const Estimate& estimate);
// "LUTs within 15 % of Yosys's on designs that nothing was fitted to"
std::string stated_error(const Estimate& estimate);

}  // namespace mase
