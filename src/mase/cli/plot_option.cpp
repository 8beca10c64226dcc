// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/plot_option.h"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "mase/cli/terminal.h"

namespace mase {

std::vector<Field> plot_fields() {
  return {{.name = "plot",
           .type = FieldType::boolean,
           .default_value = false,
           .help = "draw plots in the terminal",
           .group = "Plots"},
          {.name = "ascii",
           .type = FieldType::boolean,
           .default_value = false,
           .help = "draw them in plain ASCII",
           .group = "Plots"}};
}

PlotStyle plot_style(const Value& options) {
  constexpr int widest = 160;  // longer lines are harder to read, not finer
  PlotStyle style;
  style.ascii = options["ascii"].is_bool() && options["ascii"].as_bool();
  style.width = std::min(terminal_columns(), widest);
  const char* no_colour = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  style.colour = output_is_terminal() && !(no_colour && *no_colour) && kind &&
                 std::string_view(kind) != "dumb";
  return style;
}

}  // namespace mase
