// SPDX-License-Identifier: Apache-2.0
// --plot and --ascii for commands that can draw in the terminal.
#pragma once

#include <vector>

#include "mase/cli/command.h"
#include "mase/report/text/plot.h"

namespace mase {

// The two switches, to be appended to a command's options.
std::vector<Field> plot_fields();

// Width of the terminal (COLUMNS or 80 where there is none); colours only on a terminal that is not
// dumb, and never with NO_COLOR.
PlotStyle plot_style(const Value& options);

}  // namespace mase
