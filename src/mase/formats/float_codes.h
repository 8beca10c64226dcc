// SPDX-License-Identifier: Apache-2.0
// What the floating-point formats share: a quantizer from a FloatSpec, and codes of the layout
// sign, exponent field, fraction.
#pragma once

#include "mase/formats/elementwise.h"
#include "mase/formats/kernels/elementwise.h"

namespace mase {

// What the topmost codes mean.
enum class Specials {
  none,  // all codes are numbers
  nan,   // all ones is NaN (OCP E4M3)
  ieee,  // the all-ones exponent is infinity (fraction 0) and NaN
};

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

uint32_t float_code(const FloatLayout& layout, float value);  // of a representable value
float float_value(const FloatLayout& layout, uint32_t code);

// Kernel, reference, codes and limits for this layout.
ElementwiseFormat float_format(const FloatLayout& layout, const FloatSpec& spec);

Field exponent_width_field(int64_t least, int64_t most);
Field exponent_bias_field();

}  // namespace mase
