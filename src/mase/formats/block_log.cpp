// SPDX-License-Identifier: Apache-2.0
// Signed powers of two with a shared exponent bias per block. The largest value of the block sits
// at the top exponent; as in `log`, the code of the least negative number means zero.
//
// MASE (rounding = "reference") has no zero: blocks of zeros become small positive numbers.
#include <algorithm>
#include <cmath>

#include "mase/formats/blocks.h"
#include "mase/formats/float_layout.h"
#include "mase/formats/reference_rules.h"

namespace mase::block_log_format {
namespace {

Quantizer make(const Value& config) {
  const int width = static_cast<int>(config["width"].as_int());
  const int bias_width = static_cast<int>(config["exponent_bias_width"].as_int());
  const int exponent = width - 1;
  const int top_field = (1 << exponent) - 1, largest_bias = (1 << bias_width) - 1;

  Quantizer quantizer;
  if (config["rounding"].as_string() == reference_rounding) {
    quantizer = make_reference_block(
        {.blocking = blocking_from(config),
         .shared =
             [top_field, largest_bias](float largest) {
               return std::clamp(static_cast<float>(top_field) - std::ceil(rounded_log2(largest)),
                                 0.0f, static_cast<float>(largest_bias));
             },
         .element = [exponent](
                        float bias,
                        float x) { return reference_log(x, exponent, static_cast<int>(bias)); },
         .element_bits = static_cast<double>(width),
         .shared_bits = static_cast<double>(bias_width)},
        config);
  } else {
    const int bias = default_bias(exponent), top = top_field - bias;
    BlockFormat format;
    format.spec.whole = false;
    format.spec.element.mantissa = 0;
    format.spec.element.emin = -bias;
    format.spec.element.largest = std::ldexp(1.0f, top);
    format.spec.element.one_sided_zero = true;
    format.spec.carry_bits = 0;
    format.spec.offset = top;
    format.spec.least = bias - largest_bias;
    format.spec.most = bias;
    format.blocking = blocking_from(config);
    format.shared_bits = bias_width;
    format.coding = coding_of({.kind = CodeLayout::Kind::power, .width = width, .bias = bias});
    quantizer = make_block(std::move(format), config);
  }
  quantizer.precision = {width, bias_width};
  return quantizer;
}

const Register<FormatRecord> registered{{
    .name = "block_log",
    .class_suffix = "BlockLog",
    .summary = "signed powers of two with a shared exponent bias per block",
    .schema = {{width_field(2, 8, "bits of a value: sign and exponent"),
                exponent_bias_width_field(), block_size_field(List{Value(16)}),
                skip_first_dim_field(), rounding_field(true)}},
    .make = make,
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
