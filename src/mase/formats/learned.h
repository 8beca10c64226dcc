// SPDX-License-Identifier: Apache-2.0
// Ranges of scaled integers that training finds: the step (LSQ) or the end of the range (PACT).
#pragma once

#include <memory>

#include "mase/formats/rounder.h"

namespace mase {

// Of a type whose source is learned. `start` finds the step of a group before training.
std::shared_ptr<const LearnedNumber> learned_range(const Scaled& type,
                                                   const Granularity& granularity,
                                                   Rounder::Fit start);

// Codes are exact in single precision, with bits to spare for v = x / step.
inline constexpr int learned_width_limit = 16;

}  // namespace mase
