// SPDX-License-Identifier: Apache-2.0
// Floating point and powers of two: the kernel's numbers for a type, and its codes.
#pragma once

#include "mase/formats/config.h"
#include "mase/formats/kernels/codes.h"
#include "mase/formats/kernels/elementwise.h"
#include "mase/formats/number_type.h"

namespace mase {

int default_bias(int exponent_width);  // 2^(e-1) - 1

// Ranges are cut to what single precision holds.
FloatSpec float_spec(const Float& type);
FloatSpec float_spec(const Log& type);
Limits float_limits(const Float& type);
Limits float_limits(const Log& type);
CodeLayout float_codes(const Float& type);
CodeLayout float_codes(const Log& type);

Field exponent_width_field(int64_t least, int64_t most);
Field exponent_bias_field();

}  // namespace mase
