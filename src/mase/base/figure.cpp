// SPDX-License-Identifier: Apache-2.0
#include "mase/base/figure.h"

#include <fmt/format.h>

#include <cmath>
#include <string>

namespace mase {

std::string figure_text(double value, int decimals) {
  if (!std::isfinite(value)) return fmt::format("{}", value);
  const double power = std::pow(10.0, decimals);
  // A float holds seven digits of a share: what they say is a half is one.
  const double scaled =
      std::stod(fmt::format("{:.{}e}", value * power, std::abs(value) * power <= 1e4 ? 6 : 11));
  return fmt::format("{:.{}f}", std::round(scaled) / power, decimals);
}

std::string signed_figure_text(double value, int decimals) {
  const std::string text = figure_text(value, decimals);
  return text.starts_with('-') || !std::isfinite(value) ? text : "+" + text;
}

}  // namespace mase
