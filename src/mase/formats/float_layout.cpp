// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/float_layout.h"

#include <algorithm>
#include <cmath>

namespace mase {

int default_bias(int exponent_width) {
  return exponent_width == 0 ? 0 : (1 << (exponent_width - 1)) - 1;
}

FloatSpec float_spec(const FloatLayout& layout) {
  const int m = layout.mantissa_width;
  int top_field = (1 << layout.exponent_width) - 1;
  double fraction = 2 - std::ldexp(1.0, -m);
  if (layout.specials == Specials::ieee) top_field -= 1;
  if (layout.specials == Specials::nan) {
    // The last code of the top exponent is taken.
    fraction -= std::ldexp(1.0, -m);
    if (m == 0) {
      top_field -= 1;
      fraction = 1;
    }
  }
  FloatSpec spec;
  spec.mantissa = m;
  // Steps finer than single precision's are exact anyway.
  spec.emin = std::max(1 - layout.bias, -149 + m);
  const int top = top_field - layout.bias;
  spec.largest = top > 127 ? static_cast<float>(std::ldexp(2 - std::ldexp(1.0, -m), 127))
                           : static_cast<float>(std::ldexp(fraction, top));
  // With one exponent only, the largest number is subnormal.
  if (top_field == 0) spec.largest = static_cast<float>(std::ldexp(fraction - 1, 1 - layout.bias));
  spec.has_infinity = layout.specials == Specials::ieee;
  return spec;
}

CodeLayout float_codes(const FloatLayout& layout) {
  return {.kind = CodeLayout::Kind::floating,
          .width = layout.width(),
          .mantissa = layout.mantissa_width,
          .bias = layout.bias,
          .specials = layout.specials};
}

ElementwiseFormat float_format(const FloatLayout& layout, const FloatSpec& spec) {
  ElementwiseFormat format;
  format.kernel = [spec](const float* in, float* out, size_t count, uint64_t) {
    float_kernel(spec, in, out, count);
  };
  format.reference = [spec](float x, uint64_t, uint32_t) { return float_reference(spec, x); };
  format.bits = layout.width();
  format.largest = spec.largest;
  format.lowest = -format.largest;
  format.smallest_positive =
      std::min(std::ldexp(1.0, 1 - layout.bias - layout.mantissa_width), format.largest);
  const int top = (1 << layout.exponent_width) - 1 - layout.bias;
  if (top <= 128 - (layout.specials != Specials::ieee) &&
      1 - layout.bias - layout.mantissa_width >= -149)
    format.coding = coding_of(float_codes(layout));
  return format;
}

Field exponent_width_field(int64_t least, int64_t most) {
  return {.name = "exponent_width",
          .type = FieldType::integer,
          .help = "bits of the exponent",
          .required = true,
          .minimum = static_cast<double>(least),
          .maximum = static_cast<double>(most)};
}

Field exponent_bias_field() {
  return {.name = "exponent_bias",
          .type = FieldType::integer,
          .help = "subtracted from the exponent field; 2^(exponent_width-1)-1 if not given",
          .minimum = -126,
          .maximum = 254};
}

}  // namespace mase
