// SPDX-License-Identifier: Apache-2.0
// Words of a command line as the arguments of a command.
#pragma once

#include <string>
#include <vector>

#include "mase/cli/command.h"

namespace mase {

// False, and the command's help, where that is asked for; what cannot be is an Error. The command
// line itself is left to the caller.
bool parse_arguments(const CommandRecord& command, const std::vector<std::string>& words,
                     Arguments& arguments, std::string& help);

std::string capitalised(std::string text);

}  // namespace mase
