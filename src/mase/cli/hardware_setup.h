// SPDX-License-Identifier: Apache-2.0
// What emit, simulate, synth and estimate share: their options, and what these say.
#pragma once

#include <vector>

#include "mase/cli/command.h"
#include "mase/run/hardware/hardware.h"

namespace mase {

std::vector<Field> hardware_network_options();  // where the network comes from
// What rows of data are for is the command's own.
std::vector<Positional> hardware_positionals(const std::string& data_help);

// --load: a .mz, a checkpoint of a named model with the passes of --config, or another program's
// file.
HardwareSpec read_hardware_spec(const Arguments& arguments);
// --seed, or the seed of the file of --config, is the design's too.
DesignOptions read_design_options(const Arguments& arguments, const HardwareSpec& spec);
// Said of a folded design where the whole network unrolled takes no more; empty, or a line.
std::string folding_note(const IntegerGraph& lowered, const Estimate& folded);

}  // namespace mase
