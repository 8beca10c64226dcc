// SPDX-License-Identifier: Apache-2.0
// ch search compare: several samplers, many seeds, one space.
#pragma once

#include "mase/cli/search_setup.h"

namespace mase::search_command {

int compare_samplers(const Arguments& arguments, const Prepared& prepared);

}  // namespace mase::search_command
