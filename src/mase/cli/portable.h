// SPDX-License-Identifier: Apache-2.0
// --deterministic: the same bits on every x86-64 machine.
#pragma once

#include <string>
#include <vector>

namespace mase {

// Limits the kernels to what every machine has. The C library decides when a program starts, so
// the program starts itself again with the variable that tells it; call this before anything else
// runs.
void run_portably(const std::vector<std::string>& command_line);

}  // namespace mase
