// SPDX-License-Identifier: Apache-2.0
// ch format sweep: one network, every registered format, accuracy against bits.
#pragma once

#include "mase/cli/command.h"

namespace mase {

int format_sweep(const Arguments& arguments);

}  // namespace mase
