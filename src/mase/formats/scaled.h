// SPDX-License-Identifier: Apache-2.0
// Integers with a real scale: the range of their codes, and their quantizer.
#pragma once

#include "mase/formats/format.h"
#include "mase/formats/kernels/scaled.h"

namespace mase {

// The range of the codes, with a step of 1 and no zero point.
ScaledSpec code_range(const Scaled& type);
// The codes of given steps with the step of one group in place.
ScaledSpec given_spec(const Scaled& type, int64_t group);

Quantizer scaled_quantizer(const Scaled& type, const Granularity& granularity);

// MASE's rows: the scale is 2^(w-1) / (max|x| + 1e-9).
Quantizer reference_scaled_quantizer(const NumberType& like);

}  // namespace mase
