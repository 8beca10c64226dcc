// SPDX-License-Identifier: Apache-2.0
// What emit, simulate, synth and estimate share: their options, the network in integers, and the
// rows it is compared on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/cli/command.h"
#include "mase/hardware/design.h"
#include "mase/hardware/lower_graph.h"

namespace mase {

std::vector<Field> hardware_network_options();  // where the network comes from
std::vector<Field> design_options();            // how it is built
std::vector<Positional> hardware_positionals();

struct HardwareNetwork {
  IntegerGraph graph;                    // lowered, nothing optimised
  std::optional<LoweredNetwork> source;  // of a network that the engine runs
  std::optional<Graph> network;
  std::optional<Tensor> test_rows;  // of the data set
  std::string rows_origin, origin;
};
// --load: a .mz, a checkpoint of a named model with the passes of --config, or a fixed-point
// network (NAME.json beside NAME.safetensors).
HardwareNetwork load_hardware_network(const Arguments& arguments);
DesignOptions read_design_options(const Arguments& arguments);

struct Compared {
  std::vector<int64_t> inputs;  // codes of all rows
  std::string origin;           // what the rows are
  bool engine = false;          // compared with the engine
};
// The engine's outputs against the interpreter's, on the test rows of --dataset or on rows drawn
// for it. A difference is an error that names the first node that differs.
Compared compare_with_engine(const HardwareNetwork& network, const Arguments& arguments);

}  // namespace mase
