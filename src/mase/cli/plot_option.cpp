// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/plot_option.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <string_view>

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

PlotStyle plot_style(const Arguments& arguments) {
  PlotStyle style;
  style.ascii = arguments["ascii"].is_bool() && arguments["ascii"].as_bool();
  const bool terminal = ::isatty(STDOUT_FILENO) == 1;
  winsize size{};
  const char* columns = std::getenv("COLUMNS");
  if (terminal && ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
    style.width = size.ws_col;
  else if (const auto asked = parse_integer(columns ? columns : ""))
    style.width = static_cast<int>(std::clamp<int64_t>(*asked, 20, 1000));
  style.width = std::min(style.width, 160);  // longer lines are harder to read, not finer
  const char* no_colour = std::getenv("NO_COLOR");
  const char* kind = std::getenv("TERM");
  style.colour = terminal && !(no_colour && *no_colour) && kind && std::string_view(kind) != "dumb";
  return style;
}

}  // namespace mase
