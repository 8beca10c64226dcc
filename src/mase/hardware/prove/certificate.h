// SPDX-License-Identifier: Apache-2.0
// What a design claims of its modules, in a form that another program can check: for every module
// that is a graph, that graph as text, which wire each of its nodes is, and the network's own graph
// before it was optimised. A check needs these and the SystemVerilog alone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "mase/base/value.h"
#include "mase/hardware/emit/emitter.h"
#include "mase/hardware/verify/check_module.h"

namespace mase {

Value certificate_of(const std::vector<GraphModule>& modules);
struct CheckedModule {
  std::string module;
  size_t nodes = 0;
  ModuleProof proof;
};
// Has Yosys read rtl/NAME.sv and what it instantiates, and the checker (verify/) hold each module
// of FOLDER to its claim. What Yosys does not take is a fault of the module.
std::vector<CheckedModule> check_modules(const std::vector<ModuleClaim>& claims,
                                         const std::string& folder);
// Of the folder's certificate.json, which anybody may have written.
std::vector<ModuleClaim> folder_claims(const std::string& folder);

// Of a stream: that its stages and queues behave as their handshakes claim, in every state that
// their control can reach, that the top module connects them so, and that no row ever stops.
struct CheckedFlow {
  int64_t stages = 0, queues = 0, states = 0;
  std::string module, fault;      // the first that is not as it claims
  std::vector<std::string> open;  // what could not be shown
  bool proved() const { return fault.empty() && open.empty(); }
};
// `flow` is the manifest's; null: no stream.
std::optional<CheckedFlow> check_flow(const Value& flow, const std::string& folder);
Value folder_flow(const std::string& folder);

}  // namespace mase
