// SPDX-License-Identifier: Apache-2.0
// ch search compare: several samplers, many seeds, one space.
#pragma once

#include <functional>
#include <vector>

#include "mase/cli/terminal.h"
#include "mase/run/search/search_run.h"

namespace mase::search_command {

int compare_samplers(const PreparedSearch& prepared, const Logger& log,
                     const std::function<RunFolder()>& create_folder);
std::vector<Field> compare_options();  // of the comparison alone

}  // namespace mase::search_command
