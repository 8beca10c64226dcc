// SPDX-License-Identifier: Apache-2.0
// Powers of two. `log` uses every code of sign and exponent: +-2^E, except that the code of the
// least negative number, -2^-bias, means zero (MASE has no zero at all). `power_of_two` gives the
// whole lowest exponent field to zero and is symmetric.
//
// The nearest value wins, so the border between 2^E and 2^(E+1) is 1.5 * 2^E. rounding =
// "reference" is MASE's rule: E = round(log2(|x| + 0.1 * 2^-bias)), border sqrt(2) * 2^E, and zero
// becomes 2^-bias.
#include "mase/formats/floating.h"
#include "mase/formats/reference_rules.h"

namespace mase::log_format {
namespace {

Log parse(const Value& config, Log::Zero zero) {
  const int width = static_cast<int>(config["width"].as_int());
  return {width, static_cast<int>(int_or(config, "exponent_bias", default_bias(width - 1))), zero};
}

TypeOrReason log_type(const Value& config) {
  if (config["rounding"].as_string() == reference_rounding) return reference_reason;
  return NumberType{parse(config, Log::Zero::least_negative)};
}

Rounder by_reference(const Value& config) {
  const Log log = parse(config, Log::Zero::least_negative);
  return reference_rounder({log},
                           [log](float x) { return reference_log(x, log.width - 1, log.bias); });
}

TypeOrReason power_type(const Value& config) {
  return NumberType{parse(config, Log::Zero::lowest_field)};
}

std::vector<int64_t> precision(const Value& config) {
  const Log log = parse(config, Log::Zero::lowest_field);
  return {log.width, log.bias};
}

const Register<FormatRecord> registered_log{{
    .name = "log",
    .class_suffix = "Log",
    .summary = "signed powers of two; one code is zero",
    .schema = {{width_field(2, 32, "sign and exponent bits"), exponent_bias_field(),
                rounding_field(true), ste_field()}},
    .type = log_type,
    .make = by_reference,
    .precision = precision,
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
    .schema = {{width_field(2, 32, "sign and exponent bits"), exponent_bias_field(), ste_field()}},
    .type = power_type,
    .precision = precision,
    .ladder = [](double) -> std::vector<Value> {
      std::vector<Value> configs;
      for (const int width : {3, 4, 5, 6, 8}) configs.push_back(Dict{{"width", width}});
      return configs;
    },
}};

}  // namespace
}  // namespace mase::log_format
