// SPDX-License-Identifier: Apache-2.0
// MASE's published arithmetic for single values, in single precision, operation by operation. Only
// rounding = "reference" uses it.
#pragma once

#include <functional>

#include "mase/formats/format.h"

namespace mase {

// Rounds by the rule, one by one; bits and limits are those of the type whose place it takes. Not
// every result has a code.
Rounder reference_rounder(const NumberType& like, std::function<float(float)> rule);
// Why such a config has no number type.
inline constexpr const char* reference_reason =
    "MASE's published rule does not round to a fixed set of numbers";

// The single-precision rounding of the true logarithm.
float rounded_log2(float x);

float reference_minifloat_ieee(float x, int exponent_width, int mantissa, int bias);
float reference_minifloat_denorm(float x, int exponent_width, int mantissa, int bias);
float reference_log(float x, int exponent_width, int bias);

// sign(x + 1e-9): what the minifloats and block_fp multiply their magnitude by.
float reference_sign(float x);

}  // namespace mase
