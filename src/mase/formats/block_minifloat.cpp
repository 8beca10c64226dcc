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
#include "mase/formats/floating.h"
#include "mase/formats/reference_rules.h"

namespace mase::block_minifloat_format {
namespace {

// Elements are kept around 1 by the usual bias, or where single precision holds them if they have
// more exponents than that; the exponent of a block is the rest.
Block parse(const Value& config) {
  const int width = static_cast<int>(config["width"].as_int());
  Float element;
  element.exponent = static_cast<int>(config["exponent_width"].as_int());
  element.mantissa = width - element.exponent - 1;
  element.bias =
      element_bias(element.exponent, static_cast<int>(config["exponent_bias_width"].as_int()));
  const bool by_reference = config["rounding"].as_string() == reference_rounding;
  if (element.mantissa < 0 && !by_reference)
    throw config_error(config, "exponent_width",
                       fmt::format("an exponent of {} bits leaves no room in a word of {} bits",
                                   element.exponent, width),
                       fmt::format("give at most {}, a wider word, or rounding = \"reference\" for "
                                   "MASE's numbers",
                                   width - 1));
  Block type;
  type.element = element;
  type.scale_bits = static_cast<int>(config["exponent_bias_width"].as_int());
  type.least = element.bias - ((1 << type.scale_bits) - 1);
  type.most = largest_block_exponent(element.exponent, element.bias);
  type.carry = true;
  read_block_form(type, config);
  return type;
}

TypeOrReason type(const Value& config) {
  const Block parsed = parse(config);
  if (config["rounding"].as_string() == reference_rounding) return reference_reason;
  return NumberType{parsed};
}

Rounder by_reference(const Value& config) {
  Block like = parse(config);
  const Float element = std::get<Float>(like.element);
  std::get<Float>(like.element).mantissa = std::max(0, element.mantissa);
  const auto largest_bias = static_cast<float>((1 << like.scale_bits) - 1);
  return reference_blocks(
      like, {.shared =
                 [largest_bias](float largest) {
                   return std::clamp(std::floor(rounded_log2(largest)), 0.0f, largest_bias);
                 },
             .element =
                 [element](float bias, float x) {
                   return reference_minifloat_ieee(x, element.exponent, element.mantissa,
                                                   static_cast<int>(bias));
                 }});
}

std::vector<int64_t> precision(const Value& config) {
  const Block type = parse(config);
  const Float& element = std::get<Float>(type.element);
  return {element.width(), element.exponent, type.scale_bits};
}

const Register<FormatRecord> registered{{
    .name = "block_minifloat",
    .class_suffix = "BlockMinifloat",
    .summary = "small floats with a shared exponent bias per block",
    .schema = {{width_field(2, 32, "bits of a value: sign, exponent, mantissa"),
                exponent_width_field(1, 22), exponent_bias_width_field(),
                block_size_field(List{Value(16)}), skip_first_dim_field(), rounding_field(true)}},
    .type = type,
    .make = by_reference,
    .precision = precision,
    .adapt = adapt_batch,
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
