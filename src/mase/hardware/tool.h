// SPDX-License-Identifier: Apache-2.0
// Programs of others that are called when they are there: Yosys, Verilator, Icarus Verilog.
#pragma once

#include <string>
#include <vector>

namespace mase {

// Whether a program of this name is on the path, or at this place.
bool tool_exists(const std::string& program);
// One error that says how to get it.
void require_tool(const std::string& program);

struct ToolResult {
  int exit_code = 0;   // 128 + signal if it was killed
  std::string output;  // both streams
  double seconds = 0;
};
// Runs it without a shell in this folder and waits for its end.
ToolResult run_tool(const std::vector<std::string>& words, const std::string& folder);

}  // namespace mase
