// SPDX-License-Identifier: Apache-2.0
// Signed powers of two with a shared exponent bias per block. The largest value of the block sits
// at the top exponent; as in `log`, the code of the least negative number means zero.
//
// MASE (rounding = "reference") has no zero: blocks of zeros become small positive numbers.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "mase/formats/blocks.h"
#include "mase/formats/floating.h"
#include "mase/formats/reference_rules.h"

namespace mase::block_log_format {
namespace {

int width_of(const Value& config) { return static_cast<int>(config["width"].as_int()); }
int bias_width_of(const Value& config) {
  return static_cast<int>(config["exponent_bias_width"].as_int());
}

// Elements are kept around 1 by the usual bias, or where single precision holds them if they have
// more exponents than that; the exponent of a block is the rest.
Block parse(const Value& config) {
  const int width = width_of(config);
  const int bias = element_bias(width - 1, bias_width_of(config));
  Block type;
  type.element = Log{width, bias};
  type.scale_bits = bias_width_of(config);
  type.least = bias - ((1 << type.scale_bits) - 1);
  type.most = largest_block_exponent(width - 1, bias);
  type.carry = true;
  read_block_form(type, config);
  return type;
}

TypeOrReason type(const Value& config) {
  if (config["rounding"].as_string() == reference_rounding) return reference_reason;
  return NumberType{parse(config)};
}

Rounder by_reference(const Value& config) {
  const int exponent = width_of(config) - 1;
  const auto top_field = static_cast<float>((int64_t{1} << exponent) - 1);
  const auto largest_bias = static_cast<float>((1 << bias_width_of(config)) - 1);
  return reference_blocks(
      parse(config),
      {.shared =
           [top_field, largest_bias](float largest) {
             return std::clamp(top_field - std::ceil(rounded_log2(largest)), 0.0f, largest_bias);
           },
       .element = [exponent](
                      float bias,
                      float x) { return reference_log(x, exponent, static_cast<int>(bias)); }});
}

std::vector<int64_t> precision(const Value& config) {
  return {width_of(config), bias_width_of(config)};
}

const Register<FormatRecord> registered{{
    .name = "block_log",
    .class_suffix = "BlockLog",
    .summary = "signed powers of two with a shared exponent bias per block",
    .schema = {{width_field(2, 32, "bits of a value: sign and exponent"),
                exponent_bias_width_field(), block_size_field(List{Value(16)}),
                skip_first_dim_field(), rounding_field(true)}},
    .type = type,
    .make = by_reference,
    .precision = precision,
    .adapt = adapt_batch,
    .ladder = [](double) -> std::vector<Value> {
      std::vector<Value> configs;
      for (const int width : {3, 4, 5, 6, 8})
        configs.push_back(Dict{{"width", width},
                               {"exponent_bias_width", 8},
                               {"block_size", List{Value(1), Value(16)}}});
      return configs;
    },
}};

}  // namespace
}  // namespace mase::block_log_format
