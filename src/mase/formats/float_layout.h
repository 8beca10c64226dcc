// SPDX-License-Identifier: Apache-2.0
// What the floating-point formats share: the layout of sign, exponent field and fraction, and what
// follows from it.
#pragma once

#include "mase/formats/elementwise.h"
#include "mase/formats/kernels/elementwise.h"

namespace mase {

struct FloatLayout {
  int exponent_width = 4;
  int mantissa_width = 3;
  int bias = 7;
  Specials specials = Specials::none;

  int width() const { return 1 + exponent_width + mantissa_width; }
};

int default_bias(int exponent_width);  // 2^(e-1) - 1

// Its range, cut to what single precision holds.
FloatSpec float_spec(const FloatLayout& layout);

CodeLayout float_codes(const FloatLayout& layout);

// Kernel, reference, codes and limits for this layout.
ElementwiseFormat float_format(const FloatLayout& layout, const FloatSpec& spec);

Field exponent_width_field(int64_t least, int64_t most);
Field exponent_bias_field();

}  // namespace mase
