// SPDX-License-Identifier: Apache-2.0
// share_additions() for sums that end in explicit carry chains: terms of few bits stay terms, since
// a chain takes them in for less than a table that adds them up.
#pragma once

#include "mase/hardware/optimize/optimize.h"

namespace mase {

IntegerGraph share_plain_additions(const IntegerGraph& graph, const CmvmOptions& options);

}  // namespace mase
