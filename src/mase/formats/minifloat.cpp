// SPDX-License-Identifier: Apache-2.0
// MASE's small floats: minifloat_ieee (hidden bit, subnormals, every code a finite number) and
// minifloat_denorm (no hidden bit: sign * 2^E * k / 2^m with k < 2^m).
//
// By default the nearest value, ties to even, with carry into the exponent. rounding = "reference"
// is MASE's rule: the exponent is taken from log2(|x| + 1e-9) before rounding and the mantissa
// saturates instead of carrying; |x| <= 1e-8 passes unchanged; infinities become NaN. That rule has
// a number for words whose exponent leaves no room for anything else, too: they are no number type.
#include <algorithm>

#include "mase/formats/floating.h"
#include "mase/formats/reference_rules.h"

namespace mase::minifloat_format {
namespace {

bool by_reference_rule(const Value& config) {
  return config["rounding"].as_string() == reference_rounding;
}

Float parse(const Value& config, bool hidden_bit) {
  const int width = static_cast<int>(config["width"].as_int());
  const int least_mantissa = hidden_bit ? 0 : 1;
  Float type;
  type.hidden_bit = hidden_bit;
  type.exponent = static_cast<int>(config["exponent_width"].as_int());
  type.mantissa = width - type.exponent - 1;
  if (type.mantissa < least_mantissa && !by_reference_rule(config))
    throw config_error(config, "exponent_width",
                       fmt::format("an exponent of {} bits leaves no room in a word of {} bits",
                                   type.exponent, width),
                       fmt::format("give at most {}, a wider word, or rounding = \"reference\" for "
                                   "MASE's numbers",
                                   width - 1 - least_mantissa));
  type.bias = static_cast<int>(int_or(config, "exponent_bias", default_bias(type.exponent)));
  return type;
}

template <bool hidden_bit>
TypeOrReason type(const Value& config) {
  const Float parsed = parse(config, hidden_bit);
  if (by_reference_rule(config)) return reference_reason;
  return NumberType{parsed};
}

template <bool hidden_bit>
Rounder by_reference(const Value& config) {
  const Float f = parse(config, hidden_bit);
  Float like = f;
  like.mantissa = std::max(0, f.mantissa);
  Rounder rounder = reference_rounder({like}, [f](float x) {
    return hidden_bit ? reference_minifloat_ieee(x, f.exponent, f.mantissa, f.bias)
                      : reference_minifloat_denorm(x, f.exponent, f.mantissa, f.bias);
  });
  if (f.mantissa < 0) {
    rounder.width = f.width();
    rounder.bits = f.width();
    rounder.lowest = rounder.largest = rounder.smallest_positive = {};
  }
  return rounder;
}

std::vector<int64_t> precision(const Value& config) {
  const Float f = parse(config, true);
  return {f.width(), f.exponent, f.bias};
}

Schema schema() {
  return {{width_field(2, 32, "bits of a number: sign, exponent, mantissa"),
           exponent_width_field(1, 11), exponent_bias_field(), rounding_field(true), ste_field()}};
}

const Register<FormatRecord> ieee{{
    .name = "minifloat_ieee",
    .class_suffix = "MinifloatIEEE",
    .summary = "small float with hidden bit and subnormals, every code a finite number",
    .schema = schema(),
    .type = type<true>,
    .make = by_reference<true>,
    .precision = precision,
    .ladder = [](double) -> std::vector<Value> {
      return {Dict{{"width", 4}, {"exponent_width", 2}}, Dict{{"width", 6}, {"exponent_width", 3}},
              Dict{{"width", 8}, {"exponent_width", 4}}};
    },
}};

const Register<FormatRecord> denorm{{
    .name = "minifloat_denorm",
    .aliases = {"minifloat_simple"},
    .class_suffix = "MinifloatDenorm",
    .summary = "small float without hidden bit: sign * 2^E * k / 2^m",
    .schema = schema(),
    .type = type<false>,
    .make = by_reference<false>,
    .precision = precision,
    .ladder = [](double) -> std::vector<Value> {
      return {Dict{{"width", 4}, {"exponent_width", 2}}, Dict{{"width", 6}, {"exponent_width", 3}},
              Dict{{"width", 8}, {"exponent_width", 4}}};
    },
}};

}  // namespace
}  // namespace mase::minifloat_format
