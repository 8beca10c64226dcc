// SPDX-License-Identifier: Apache-2.0
// Block minifloat (Fox et al., "A block minifloat representation for training deep neural
// networks", 2021): small floats with a shared exponent bias per block.
//
// By default the bias is the largest at which the block's maximum still fits, so that small blocks
// keep their precision. MASE (rounding = "reference") raises the bias with the data instead, which
// makes large values saturate near zero.
#include <algorithm>
#include <cmath>

#include "mase/formats/blocks.h"
#include "mase/formats/float_layout.h"
#include "mase/formats/reference_rules.h"

namespace mase::block_minifloat_format {
namespace {

Quantizer make(const Value& config) {
  const int width = static_cast<int>(config["width"].as_int());
  const int exponent = static_cast<int>(config["exponent_width"].as_int());
  const int bias_width = static_cast<int>(config["exponent_bias_width"].as_int());
  const int m = width - exponent - 1;
  if (m < 0)
    throw config_error(
        config, "exponent_width",
        fmt::format("an exponent of {} bits leaves no room in a word of {} bits", exponent, width),
        fmt::format("give at most {}, or a wider word", width - 1));
  const int largest_bias = (1 << bias_width) - 1;

  Quantizer quantizer;
  if (config["rounding"].as_string() == reference_rounding) {
    quantizer = make_reference_block(
        {.blocking = blocking_from(config),
         .shared =
             [largest_bias](float largest) {
               return std::clamp(std::floor(rounded_log2(largest)), 0.0f,
                                 static_cast<float>(largest_bias));
             },
         .element =
             [exponent, m](float bias, float x) {
               return reference_minifloat_ieee(x, exponent, m, static_cast<int>(bias));
             },
         .element_bits = static_cast<double>(width),
         .shared_bits = static_cast<double>(bias_width)},
        config);
  } else {
    // Elements are kept around 1 by the usual bias; the exponent S of a block is the rest.
    const FloatLayout layout{exponent, m, default_bias(exponent), Specials::none};
    const int top = (1 << exponent) - 1 - layout.bias;
    BlockFormat format;
    format.spec.whole = false;
    format.spec.element = float_spec(layout);
    format.spec.carry_bits = m;
    format.spec.offset = top;
    format.spec.least = layout.bias - largest_bias;
    format.spec.most = layout.bias;
    format.blocking = blocking_from(config);
    format.shared_bits = bias_width;
    format.coding = coding_of(float_codes(layout));
    quantizer = make_block(std::move(format), config);
  }
  quantizer.precision = {width, exponent, bias_width};
  return quantizer;
}

const Register<FormatRecord> registered{{
    .name = "block_minifloat",
    .class_suffix = "BlockMinifloat",
    .summary = "small floats with a shared exponent bias per block",
    .schema = {{width_field(2, 23, "bits of a value: sign, exponent, mantissa"),
                exponent_width_field(1, 7), exponent_bias_width_field(),
                block_size_field(List{Value(16)}), skip_first_dim_field(), rounding_field(true)}},
    .make = make,
    .ladder = [](double) -> std::vector<Value> {
      std::vector<Value> configs;
      for (const auto& [width, exponent] : {std::pair{4, 2}, {6, 3}, {8, 4}})
        configs.push_back(Dict{{"width", width},
                               {"exponent_width", exponent},
                               {"exponent_bias_width", 8},
                               {"block_size", List{Value(1), Value(16)}}});
      return configs;
    },
}};

}  // namespace
}  // namespace mase::block_minifloat_format
