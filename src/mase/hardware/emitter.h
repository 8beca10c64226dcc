// SPDX-License-Identifier: Apache-2.0
// From an integer graph to a folder of SystemVerilog with everything around it. Emitters are
// records; what they share (testbench, make file, manifest) is made from the ports they say they
// have.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "mase/base/registry.h"
#include "mase/base/schema.h"
#include "mase/hardware/integer_graph.h"

namespace mase {

// Files by path inside the emitted folder.
using EmittedFiles = std::map<std::string, std::string>;

struct EmitOptions {
  std::string top = "top";
  Value values = {};  // of the emitter's own schema, defaults filled in
};

struct EmittedDesign {
  EmittedFiles files;
  int latency = 0;  // clock cycles from an input to its output; 0: no clock
  bool clocked = false;
  bool valid = false;
  // Bits of the packed input and output vectors, codes side by side, the first one lowest.
  int input_bits = 0, output_bits = 0;
  std::vector<std::string> signals;  // of every node, for read-back; empty: the style has none
};

struct EmitterRecord {
  static constexpr const char* kind = "style";
  std::string name;
  std::vector<std::string> aliases = {};
  std::string summary;
  std::string help = {};
  Schema schema = {};
  std::function<EmittedDesign(const IntegerGraph& graph, const EmitOptions& options)> emit;
};

// The testbench: reads codes from vectors.hex through the simulator's own file functions, compares
// every output and says how many rows differ.
std::string testbench_text(const IntegerGraph& graph, const EmittedDesign& design,
                           const std::string& top);
// One line a row: all input codes packed, then all output codes, in hexadecimal.
std::string vectors_text(const IntegerGraph& graph, const std::vector<int64_t>& inputs,
                         const std::vector<int64_t>& outputs);
// The same function in C++ without dependencies.
std::string cpp_header_text(const IntegerGraph& graph, const std::string& name);

}  // namespace mase
