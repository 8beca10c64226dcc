// SPDX-License-Identifier: Apache-2.0
// Integers with a real scale: the range of their codes.
#pragma once

#include "mase/formats/kernels/scaled.h"
#include "mase/formats/rounder.h"

namespace mase {

// The range of the codes, with a step of 1 and no zero point.
ScaledSpec code_range(const Scaled& type);

// MASE's rows: the scale is 2^(w-1) / (max|x| + 1e-9).
Rounder reference_scaled(const Scaled& like);

}  // namespace mase
