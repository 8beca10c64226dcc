// SPDX-License-Identifier: Apache-2.0
// An emitted folder as it is found on disk. Anybody may have written it: what its manifest says is
// held to its rules here, once, for every tool that is started on it; sources are copied into a
// folder of ours under names of ours, and what a simulator would do beside simulating is refused.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mase/hardware/emit/emitter.h"
#include "mase/hardware/verify/netlist.h"

namespace mase {

// Letters, digits and underscores, no keyword.
bool is_module_name(const std::string& name);

struct DesignFolder {
  std::string path, top, style;
  // Modules that stand in for those of its target's cells, by name.
  std::map<std::string, std::string> plain_modules = {};
  // Ports and cycles only: what a testbench or a wrapper needs.
  EmittedDesign design;
  std::optional<StreamShape> stream;  // where it has valid and ready
  std::optional<double> luts;         // by the estimate that was written with it
};
DesignFolder read_design_folder(const std::string& path);

// Of rtl/*.sv.
int64_t source_bytes(const std::string& folder);

// Copies rtl/*.sv into `work`/rtl; their paths in `work`.
std::vector<std::string> copy_sources(const std::string& folder, const std::string& work);
// The same with plain modules in the place of those that are made of a family's cells.
std::vector<std::string> copy_plain_sources(const DesignFolder& folder, const std::string& work);

// The testbench of such a design, made anew.
std::string testbench_of(const DesignFolder& folder);

// What Yosys reads in a module of a folder and in what it instantiates.
// `target`: whose cells these are made of; empty: of none.
Netlist module_netlist(const std::string& folder, const std::string& module,
                       const std::string& target);
// The same of one module alone, with these parameters; its instances are left as they are.
Netlist control_netlist(const std::string& folder, const std::string& module,
                        const std::vector<std::pair<std::string, std::string>>& parameters);
// Whether the SAT solver of Yosys proves a module of two folders to be the same function once its
// registers are filled, `latency` clock cycles on; false: not, or not in a minute.
bool same_by_sat(const std::string& folder, const std::string& other, const std::string& module,
                 const std::string& target, int latency);

}  // namespace mase
