// SPDX-License-Identifier: Apache-2.0
// Where passes send what they have to say: the caller's terminal, and files of the caller's choice.
#pragma once

#include <string>

#include "mase/passes/pass.h"

namespace mase {

void print(const PassContext& context, const std::string& text);
// As MASE logs it: "INFO     text".
void print_info(const PassContext& context, const std::string& text);

// Where a file named in arguments goes: absolute paths as they are; others below the caller's
// folder for results, or below the folder of the arguments if there is none.
std::string output_path(const PassContext& context, const std::string& name);
// Writes it there, making folders as needed; returns the path.
std::string save_text(const PassContext& context, const std::string& name, const std::string& text);

}  // namespace mase
