// SPDX-License-Identifier: Apache-2.0
// What a command says last: what can be typed next, and what to do about accuracy that rounding
// cost.
#pragma once

#include <string>
#include <vector>

namespace mase {

// One line for each command, "Next:" before the first.
std::vector<std::string> next_steps(const std::vector<std::string>& commands);

// Where so much was lost that something can be done about it; otherwise empty.
std::string lost_accuracy(double before, double after);

}  // namespace mase
