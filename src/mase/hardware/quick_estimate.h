// SPDX-License-Identifier: Apache-2.0
// What a large network costs, from counts of its lowered graph alone: signed digits and widths of
// every layer's sums, without the search for shared additions, whose outcome they predict within
// 11 per cent on products it was not fitted to (docs/hardware.md).
#pragma once

#include <optional>

#include "mase/hardware/design.h"

namespace mase {

// Nothing if the network is small enough to be optimised at once, which is more exact.
std::optional<Estimate> quick_estimate(const IntegerGraph& lowered);

}  // namespace mase
