// SPDX-License-Identifier: Apache-2.0
// Powers of two. `log` uses every code of sign and exponent: +-2^E, except that the code of the
// least negative number, -2^-bias, means zero (MASE has no zero at all). `power_of_two` gives the
// whole lowest exponent field to zero and is symmetric.
//
// The nearest value wins, so the border between 2^E and 2^(E+1) is 1.5 * 2^E. rounding =
// "reference" is MASE's rule: E = round(log2(|x| + 0.1 * 2^-bias)), border sqrt(2) * 2^E, and zero
// becomes 2^-bias.
#include <algorithm>
#include <cmath>

#include "mase/formats/float_layout.h"
#include "mase/formats/reference_rules.h"

namespace mase::log_format {
namespace {

struct Log {
  int width, exponent_width, bias;
  int top() const { return (1 << exponent_width) - 1 - bias; }
};

Log parse(const Value& config) {
  Log log;
  log.width = static_cast<int>(config["width"].as_int());
  log.exponent_width = log.width - 1;
  log.bias = static_cast<int>(int_or(config, "exponent_bias", default_bias(log.exponent_width)));
  return log;
}

Quantizer make_log(const Value& config) {
  const Log log = parse(config);
  FloatSpec spec;
  spec.mantissa = 0;
  spec.emin = std::max(-log.bias, -149);
  spec.largest = static_cast<float>(std::ldexp(1.0, std::min(log.top(), 127)));
  spec.one_sided_zero = true;
  ElementwiseFormat format = float_format({log.exponent_width, 0, log.bias}, spec);
  format.smallest_positive = std::ldexp(1.0, -log.bias);
  format.coding = {};
  if (log.top() <= 127 && log.bias <= 148)
    format.coding =
        coding_of({.kind = CodeLayout::Kind::power, .width = log.width, .bias = log.bias});
  if (config["rounding"].as_string() == reference_rounding) {
    format.reference = [log](float x, uint64_t, uint32_t) {
      return reference_log(x, log.exponent_width, log.bias);
    };
    format.kernel = [log](const float* in, float* out, size_t count, uint64_t) {
      for (size_t i = 0; i < count; ++i)
        out[i] = reference_log(in[i], log.exponent_width, log.bias);
    };
    format.coding = {};
  }
  Quantizer quantizer = make_elementwise(std::move(format), config);
  quantizer.precision = {log.width, log.bias};
  return quantizer;
}

Quantizer make_power(const Value& config) {
  const Log log = parse(config);
  const FloatLayout layout{log.exponent_width, 0, log.bias, Specials::none};
  Quantizer quantizer = make_elementwise(float_format(layout, float_spec(layout)), config);
  quantizer.precision = {log.width, log.bias};
  return quantizer;
}

const Register<FormatRecord> registered_log{{
    .name = "log",
    .class_suffix = "Log",
    .summary = "signed powers of two; one code is zero",
    .schema = {{width_field(2, 12, "sign and exponent bits"), exponent_bias_field(),
                rounding_field(true), ste_field()}},
    .make = make_log,
    .ladder = [](double) -> std::vector<Value> {
      std::vector<Value> configs;
      for (const int width : {3, 4, 5, 6, 8}) configs.push_back(Dict{{"width", width}});
      return configs;
    },
}};

const Register<FormatRecord> registered_power{{
    .name = "power_of_two",
    .class_suffix = "PowerOfTwo",
    .summary = "signed powers of two, with the lowest exponent field for zero",
    .schema = {{width_field(2, 12, "sign and exponent bits"), exponent_bias_field(), ste_field()}},
    .make = make_power,
    .ladder = [](double) -> std::vector<Value> {
      std::vector<Value> configs;
      for (const int width : {3, 4, 5, 6, 8}) configs.push_back(Dict{{"width", width}});
      return configs;
    },
}};

}  // namespace
}  // namespace mase::log_format
