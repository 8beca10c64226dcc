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

std::string lost_accuracy(double before, double after) {
  constexpr double worth_saying = 0.01;
  if (before - after < worth_saying) return "";
  return fmt::format(
      "{:.1f} points were lost: let the data choose the fraction bits ([passes.calibrate]), or "
      "train with the rounding (ch train --load, a tenth of the learning rate); see "
      "docs/how_to/six_bits_within_a_point.md",
      100 * (before - after));
}

}  // namespace mase
