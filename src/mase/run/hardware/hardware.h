// SPDX-License-Identifier: Apache-2.0
// From a quantised network to a folder of hardware, without a terminal: the network in integers,
// the rows on which the engine and the integers are compared, the design written and proved.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "mase/base/schema.h"
#include "mase/hardware/emit/design.h"
#include "mase/hardware/lower/lower_graph.h"
#include "mase/hardware/prove/overflow.h"
#include "mase/run/observer.h"
#include "mase/run/spec.h"

namespace mase {

struct HardwareSpec {
  NetworkSpec network = {};  // `load` may also be a file that import_network() reads
  DataSpec data = {};        // whose test rows are compared; none: drawn rows
  PassList passes = {};      // run on the loaded network
  bool drawn = false;        // drawn rows are compared although there are data
  int64_t rows = 2000;       // so many are drawn
  uint64_t seed = 0;         // of drawn rows
};

struct HardwareNetwork {
  Graph network;
  LoweredNetwork lowered;  // nothing optimised
  std::string origin;      // the file
  std::optional<Tensor> test_rows;
  std::string rows_origin;                     // what those are: "4000 test rows of jsc (...)"
  std::optional<Tensor> labels = {};           // classes of those rows, where they have some
  std::optional<double> accuracy_before = {};  // on them, of the network before its passes
  // The file gives integers (a fixed-point network): they are the network, and single precision may
  // be too narrow to follow them.
  bool integers_given = false;
  std::vector<std::string> folded = {};  // batch norms that went into rounded layers
};
HardwareNetwork load_hardware_network(const HardwareSpec& spec, const Observer& observer = {});
// The last steps of that, for a network in memory: what has no exact integers as it stands (batch
// norms behind rounded layers, learned steps) becomes what has, then `lowered` is made.
void make_integers(HardwareNetwork& hardware, const Observer& observer = {});

struct Compared {
  std::vector<int64_t> inputs;          // codes of all rows
  std::string origin;                   // what the rows are
  bool engine = false;                  // all rows are equal
  std::optional<double> accuracy = {};  // of the integers, where the rows have classes
  std::string reason = {};              // why not, where that is no fault
};
// The engine's outputs against the interpreter's. A difference is an error that names the first
// node that differs.
Compared compare_with_engine(const HardwareNetwork& network, const HardwareSpec& spec);

struct EmitResult {
  Design design;
  std::optional<ModuleProof> proof;
  std::string proof_text;  // what was proved, or why nothing was
  OverflowReport overflow;
};
// Writes the folder. `prove`: Yosys, where it is installed, reads it back; a fault is an error.
EmitResult emit_hardware(const HardwareNetwork& network, const Compared& compared,
                         const DesignOptions& options, const std::string& folder, bool prove);

// Options by name: how a design is built, styles' own included.
std::vector<Field> design_fields();
// What values of design_fields() mean. An option that was `given` for a style not chosen is an
// error.
DesignOptions design_options(const Value& values, const std::vector<std::string>& given);

}  // namespace mase
