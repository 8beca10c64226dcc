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
// Runs it without a shell in this folder and waits for its end. Ctrl-C and kill end the tool, and
// are an error.
ToolResult run_tool(const std::vector<std::string>& words, const std::string& folder);

// Where a tool works, inside the folder of a design; gone with the object unless it is kept.
class WorkFolder {
 public:
  WorkFolder(const std::string& design, const std::string& name);
  ~WorkFolder();
  WorkFolder(const WorkFolder&) = delete;
  WorkFolder& operator=(const WorkFolder&) = delete;

  const std::string& path() const { return path_; }
  void keep() { kept_ = true; }

 private:
  std::string path_;
  bool kept_ = false;
};

}  // namespace mase
