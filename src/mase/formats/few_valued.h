// SPDX-License-Identifier: Apache-2.0
// The rounders of two and three values, where a type does not say all.
#pragma once

#include "mase/formats/rounder.h"

namespace mase {

// The sign drawn with probability clamp((x + 1) / 2, 0, 1).
Rounder stochastic_binary(const Binary& like, uint64_t seed);
// MASE's ternary: a group in which every value is zeroed is scaled by NaN.
Rounder reference_ternary(bool scaled);

}  // namespace mase
