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
#include "mase/formats/floating.h"
#include "mase/formats/reference_rules.h"

namespace mase::block_fp_format {
namespace {

struct Parsed {
  Block type;
  int width, exponent_width, bias;
};

Parsed parse(const Value& config) {
  Parsed parsed;
  parsed.width = static_cast<int>(config["width"].as_int());
  parsed.exponent_width = static_cast<int>(config["exponent_width"].as_int());
  parsed.bias =
      static_cast<int>(int_or(config, "exponent_bias", default_bias(parsed.exponent_width)));
  parsed.type.element =
      Fixed{.width = parsed.width, .frac = parsed.width - 1, .sign_magnitude = true};
  parsed.type.scale_bits = parsed.exponent_width;
  parsed.type.least = -parsed.bias;
  parsed.type.most = std::min((1 << parsed.exponent_width) - 1 - parsed.bias, 128);
  parsed.type.carry = true;
  read_block_form(parsed.type, config);
  return parsed;
}

TypeOrReason type(const Value& config) {
  if (config["rounding"].as_string() == reference_rounding) return reference_reason;
  return NumberType{parse(config).type};
}

Rounder by_reference(const Value& config) {
  const Parsed parsed = parse(config);
  const auto lowest = static_cast<float>(-parsed.bias);
  const auto top = static_cast<float>((1 << parsed.exponent_width) - 1 - parsed.bias);
  const float steps = std::ldexp(1.0f, parsed.width - 1);
  return reference_blocks(parsed.type,
                          {.shared =
                               [lowest, top](float largest) {
                                 return std::clamp(std::ceil(rounded_log2(largest)), lowest, top);
                               },
                           .element =
                               [steps](float exponent, float x) {
                                 const float a = std::fabs(x);
                                 if (a <= 1e-8f) return x;
                                 const float scale = std::exp2(exponent);
                                 const float k = std::clamp(
                                     std::nearbyint((a + 1e-9f) / scale * steps), 0.0f, steps - 1);
                                 return reference_sign(x) * (scale * (k / steps));
                               }});
}

std::vector<int64_t> precision(const Value& config) {
  const Parsed parsed = parse(config);
  return {parsed.width, parsed.exponent_width, parsed.bias};
}

Field exponent_width() {
  Field field = exponent_width_field(1, 8);
  field.required = false;
  field.default_value = 8;
  field.help = "bits of the shared exponent";
  return field;
}

Field width() {
  Field field = width_field(2, 32, "bits of a value: sign and magnitude, exponent not counted");
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
    .type = type,
    .make = by_reference,
    .precision = precision,
    .adapt = adapt_batch,
    .ladder = [](double) -> std::vector<Value> {
      std::vector<Value> configs;
      for (const int width : {2, 3, 4, 5, 6, 8})
        configs.push_back(Dict{{"width", width}, {"block_size", List{Value(1), Value(16)}}});
      return configs;
    },
}};

}  // namespace
}  // namespace mase::block_fp_format
