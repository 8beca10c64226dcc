// SPDX-License-Identifier: Apache-2.0
// Block floating point (MSFP: Darvish Rouhani et al., "Pushing the limits of narrow precision
// inferencing at cloud scale with Microsoft Floating Point", 2020): sign and width-1 bits of
// magnitude per value, one exponent per block. value = sign * k / 2^m * 2^E, k < 2^m.
//
// By default E is the least exponent at which the largest value of the block, rounded, fits. MASE
// (rounding = "reference") takes ceil(log2(max)), so that a maximum that is a power of two loses a
// step.
#include <algorithm>
#include <cmath>

#include "mase/formats/blocks.h"
#include "mase/formats/float_layout.h"
#include "mase/formats/reference_rules.h"

namespace mase::block_fp_format {
namespace {

Quantizer make(const Value& config) {
  const int width = static_cast<int>(config["width"].as_int());
  const int exponent_width = static_cast<int>(config["exponent_width"].as_int());
  const int m = width - 1;
  const int bias = static_cast<int>(int_or(config, "exponent_bias", default_bias(exponent_width)));
  const int lowest = -bias, top = (1 << exponent_width) - 1 - bias;

  Quantizer quantizer;
  if (config["rounding"].as_string() == reference_rounding) {
    const float steps = std::ldexp(1.0f, m);
    quantizer = make_reference_block(
        {.blocking = blocking_from(config),
         .shared =
             [lowest, top](float largest) {
               return std::clamp(std::ceil(rounded_log2(largest)), static_cast<float>(lowest),
                                 static_cast<float>(top));
             },
         .element =
             [steps](float exponent, float x) {
               const float a = std::fabs(x);
               if (a <= 1e-8f) return x;
               const float scale = std::exp2(exponent);
               const float k =
                   std::clamp(std::nearbyint((a + 1e-9f) / scale * steps), 0.0f, steps - 1);
               return reference_sign(x) * (scale * (k / steps));
             },
         .element_bits = static_cast<double>(width),
         .shared_bits = static_cast<double>(exponent_width)},
        config);
  } else {
    BlockFormat format;
    format.spec.whole = true;
    format.spec.element.mantissa = 0;
    format.spec.element.largest = std::ldexp(1.0f, m) - 1;
    // A maximum with exponent F gets E = F + 1, so its k has all m bits.
    format.spec.carry_bits = m - 1;
    format.spec.offset = m - 1;
    format.spec.least = lowest - m;
    format.spec.most = std::min(top, 128) - m;
    format.blocking = blocking_from(config);
    format.shared_bits = exponent_width;
    format.coding = coding_of({.kind = CodeLayout::Kind::sign_magnitude, .width = width});
    quantizer = make_block(std::move(format), config);
  }
  quantizer.precision = {width, exponent_width, bias};
  return quantizer;
}

Field exponent_width() {
  Field field = exponent_width_field(1, 8);
  field.required = false;
  field.default_value = 8;
  field.help = "bits of the shared exponent";
  return field;
}

Field width() {
  Field field = width_field(2, 23, "bits of a value: sign and magnitude, exponent not counted");
  field.required = false;
  field.default_value = 12;
  return field;
}

const Register<FormatRecord> registered{{
    .name = "block_fp",
    .class_suffix = "BlockFP",
    .summary = "block floating point: sign and magnitude per value, one exponent per block",
    .schema = {{width(), exponent_width(), exponent_bias_field(), block_size_field(List{Value(16)}),
                skip_first_dim_field(), rounding_field(true)}},
    .make = make,
    .ladder = [](double) -> std::vector<Value> {
      std::vector<Value> configs;
      for (const int width : {2, 3, 4, 5, 6, 8})
        configs.push_back(Dict{{"width", width}, {"block_size", List{Value(1), Value(16)}}});
      return configs;
    },
}};

}  // namespace
}  // namespace mase::block_fp_format
