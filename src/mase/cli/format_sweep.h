// SPDX-License-Identifier: Apache-2.0
// ch format sweep: one network, every registered format, accuracy against bits.
#pragma once

#include <string>
#include <vector>

#include "mase/cli/command.h"

namespace mase {

int format_sweep(const Arguments& arguments);

// The formats that --only names, by their own names; all of them where it is not given.
std::vector<std::string> formats_of(const Value& only);

}  // namespace mase
