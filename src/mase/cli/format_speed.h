// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "mase/cli/command.h"

namespace mase {

int format_speed(const Arguments& arguments);

}  // namespace mase
