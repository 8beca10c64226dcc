// SPDX-License-Identifier: Apache-2.0
// How a figure of merit is rounded, wherever it is shown.
#pragma once

#include <string>

namespace mase {

// To so many decimals, halves away from zero. A share of rows is the same text whether it comes as
// a double or went through a float: 0.73875 is "0.7388" in both.
std::string figure_text(double value, int decimals = 4);
// Of a difference: with its sign.
std::string signed_figure_text(double value, int decimals = 4);

}  // namespace mase
