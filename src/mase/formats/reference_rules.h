// SPDX-License-Identifier: Apache-2.0
// MASE's published arithmetic for single values, in single precision, operation by operation. Only
// rounding = "reference" uses it.
#pragma once

namespace mase {

// The single-precision rounding of the true logarithm.
float rounded_log2(float x);

float reference_minifloat_ieee(float x, int exponent_width, int mantissa, int bias);
float reference_minifloat_denorm(float x, int exponent_width, int mantissa, int bias);
float reference_log(float x, int exponent_width, int bias);

// sign(x + 1e-9): what the minifloats and block_fp multiply their magnitude by.
float reference_sign(float x);

}  // namespace mase
