// SPDX-License-Identifier: Apache-2.0
#include "mase/cli/next_steps.h"

#include <fmt/format.h>

namespace mase {

std::vector<std::string> next_steps(const std::vector<std::string>& commands) {
  std::vector<std::string> lines;
  for (const std::string& command : commands)
    lines.push_back((lines.empty() ? "Next:  " : "       ") + command);
  return lines;
}

std::string lost_accuracy(double before, double after, const std::string& network) {
  constexpr double worth_saying = 0.01;
  if (before - after < worth_saying) return "";
  const std::string train =
      network.empty() ? "ch train --load FILE.mz" : "ch train --load " + network;
  return fmt::format(
      "{:.1f} points were lost: [passes.calibrate] with apply = true chooses fraction bits from "
      "data, {} --learning-rate 1e-3 trains with the rounding, --learn-bits finds widths; "
      "docs/how_to/six_bits_within_a_point.md",
      100 * (before - after), train);
}

}  // namespace mase
