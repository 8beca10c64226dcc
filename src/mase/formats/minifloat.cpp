// SPDX-License-Identifier: Apache-2.0
// MASE's small floats: minifloat_ieee (hidden bit, subnormals, every code a finite number) and
// minifloat_denorm (no hidden bit: sign * 2^E * k / 2^m with k < 2^m).
//
// By default the nearest value, ties to even, with carry into the exponent. rounding = "reference"
// is MASE's rule: the exponent is taken from log2(|x| + 1e-9) before rounding and the mantissa
// saturates instead of carrying; |x| <= 1e-8 passes unchanged; infinities become NaN.
#include <algorithm>
#include <cmath>

#include "mase/formats/float_layout.h"
#include "mase/formats/reference_rules.h"

namespace mase::minifloat_format {
namespace {

struct MiniFloat {
  int width, exponent_width, mantissa, bias;
  int lowest_exponent() const { return -bias; }
  int top_exponent() const { return (1 << exponent_width) - 1 - bias; }
};

MiniFloat parse(const Value& config, int least_mantissa) {
  MiniFloat f;
  f.width = static_cast<int>(config["width"].as_int());
  f.exponent_width = static_cast<int>(config["exponent_width"].as_int());
  f.mantissa = f.width - f.exponent_width - 1;
  if (f.mantissa < least_mantissa)
    throw config_error(
        config, "exponent_width",
        fmt::format("an exponent of {} bits leaves no room in a word of {} bits", f.exponent_width,
                    f.width),
        fmt::format("give at most {}, or a wider word", f.width - 1 - least_mantissa));
  f.bias = static_cast<int>(int_or(config, "exponent_bias", default_bias(f.exponent_width)));
  return f;
}

template <class Rule>
void use_reference(ElementwiseFormat& format, Rule rule) {
  format.reference = [rule](float x, uint64_t, uint32_t) { return rule(x); };
  format.kernel = [rule](const float* in, float* out, size_t count, uint64_t) {
    for (size_t i = 0; i < count; ++i) out[i] = rule(in[i]);
  };
  // Values up to 1e-8 pass through: not every result has a code.
  format.coding = {};
}

Quantizer finish(ElementwiseFormat format, const MiniFloat& f, const Value& config) {
  Quantizer quantizer = make_elementwise(std::move(format), config);
  quantizer.precision = {f.width, f.exponent_width, f.bias};
  return quantizer;
}

Quantizer make_ieee(const Value& config) {
  const MiniFloat f = parse(config, 0);
  const FloatLayout layout{f.exponent_width, f.mantissa, f.bias, Specials::none};
  ElementwiseFormat format = float_format(layout, float_spec(layout));
  if (config["rounding"].as_string() == reference_rounding)
    use_reference(format, [f](float x) {
      return reference_minifloat_ieee(x, f.exponent_width, f.mantissa, f.bias);
    });
  return finish(std::move(format), f, config);
}

// k / 2^m * 2^E with k in [2^(m-1), 2^m) is 1.fraction * 2^(E-1) with m-1 fraction bits; the lowest
// exponent's smaller k are the subnormals. Other codes repeat values of lower exponents.
Quantizer make_denorm(const Value& config) {
  const MiniFloat f = parse(config, 1);
  FloatSpec spec;
  spec.mantissa = f.mantissa - 1;
  spec.emin = std::max(f.lowest_exponent() - 1, -149 + spec.mantissa);
  spec.largest = static_cast<float>(
      std::ldexp(1 - std::ldexp(1.0, -f.mantissa), std::min(f.top_exponent(), 128)));
  ElementwiseFormat format = float_format({f.exponent_width, f.mantissa, f.bias}, spec);
  format.smallest_positive = std::ldexp(1.0, f.lowest_exponent() - f.mantissa);
  format.coding = {};
  if (f.lowest_exponent() - f.mantissa >= -149 && f.top_exponent() <= 128)
    format.coding = coding_of({.kind = CodeLayout::Kind::explicit_one,
                               .width = f.width,
                               .mantissa = f.mantissa,
                               .bias = f.bias});
  if (config["rounding"].as_string() == reference_rounding)
    use_reference(format, [f](float x) {
      return reference_minifloat_denorm(x, f.exponent_width, f.mantissa, f.bias);
    });
  return finish(std::move(format), f, config);
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
    .make = make_ieee,
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
    .make = make_denorm,
    .ladder = [](double) -> std::vector<Value> {
      return {Dict{{"width", 4}, {"exponent_width", 2}}, Dict{{"width", 6}, {"exponent_width", 3}},
              Dict{{"width", 8}, {"exponent_width", 4}}};
    },
}};

}  // namespace
}  // namespace mase::minifloat_format
