// SPDX-License-Identifier: Apache-2.0
// What a network costs, in milliseconds. A large one from counts of its lowered graph alone: signed
// digits and widths of every layer's sums, without the search for shared additions, whose outcome
// they predict within 11 per cent on products it was not fitted to (docs/hardware.md); a small one
// from the graph that the least effort makes of it.
#pragma once

#include "mase/hardware/emit/design.h"

namespace mase {

Estimate quick_estimate(const IntegerGraph& lowered);

}  // namespace mase
