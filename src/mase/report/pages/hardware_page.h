// SPDX-License-Identifier: Apache-2.0
// The page of one emitted design, or of several compared: what was proved and what compared, the
// datapath with its layers' levels, bits and costs, accuracy against cost, and a bill for every
// neuron that leads to its line of SystemVerilog. From the files that `ch emit`, `ch simulate` and
// `ch synth` leave in the folder.
#pragma once

#include <string>
#include <vector>

#include "mase/base/value.h"
#include "mase/report/pages/page.h"

namespace mase {

struct DesignData {
  std::string name, folder;
  Value manifest, bill, simulation, cpp_check, synthesis;  // null: not there
  std::string source;                                      // rtl/TOP.sv; empty: not there
};

// Whether it has the manifest of an emitted design.
bool is_design_folder(const std::string& folder);
// Designs in or directly below a folder, sorted by path; symbolic links below are not followed.
std::vector<std::string> find_design_folders(const std::string& folder);
DesignData read_design(const std::string& folder);

std::vector<PagePart> design_parts(const std::vector<DesignData>& designs);
PageFrame design_frame(const std::vector<DesignData>& designs);

}  // namespace mase
