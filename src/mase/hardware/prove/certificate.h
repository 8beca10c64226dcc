// SPDX-License-Identifier: Apache-2.0
// What a design claims of its modules, in a form that another program can check: for every module
// that is a graph, that graph as text, and which wire each of its nodes is. A check needs these and
// the SystemVerilog alone, neither the network nor what wrote them.
#pragma once

#include <string>
#include <vector>

#include "mase/base/value.h"
#include "mase/hardware/emit/emitter.h"
#include "mase/hardware/prove/read_back.h"

namespace mase {

Value certificate_of(const std::vector<GraphModule>& modules);
// Of a folder that anybody may have written: names are those of modules, graphs are verified.
std::vector<GraphModule> certificate_from(const Value& certificate, const std::string& place);

struct CheckedModule {
  std::string module;
  size_t nodes = 0;
  ReadBack proof;
};
// Reads rtl/NAME.sv, and what it instantiates, with Yosys and proves each module of FOLDER to be
// its graph. What Yosys does not take is a fault of the module.
std::vector<CheckedModule> check_modules(const std::vector<GraphModule>& modules,
                                         const std::string& folder);
// The same of its certificate.json.
std::vector<CheckedModule> check_folder(const std::string& folder);

}  // namespace mase
