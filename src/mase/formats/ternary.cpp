// SPDX-License-Identifier: Apache-2.0
// -1, 0 and +1 (ternary weight networks: Li and Liu, 2016): +1 above the threshold, -1 below minus
// the threshold. The threshold is given, or 0.75 * mean, 0.05 * max or 0.75 * median of magnitudes
// given, or 0.75 times the mean magnitude of the values under the same first index. scaling_factor
// multiplies by the mean magnitude of the values that are not zeroed.
//
// MASE (rounding = "reference") ignores what is given and always takes the threshold from the data;
// an empty selection scales by NaN there and by 0 here. Any rank; a vector is one group.
#include <optional>

#include "mase/base/fields.h"
#include "mase/formats/few_valued.h"
#include "mase/formats/format.h"
#include "mase/formats/reference_rules.h"
#include "mase/formats/rounding.h"

namespace mase::ternary_format {
namespace {

std::optional<float> given_threshold(const Value& config) {
  const auto number = [&](const char* key) -> std::optional<double> {
    if (config[key].is_null()) return {};
    return config[key].as_double(key);
  };
  std::optional<double> threshold = number("threshold");
  if (!threshold && number("mean")) threshold = 0.75 * *number("mean");
  if (!threshold && number("maximum")) threshold = 0.05 * *number("maximum");
  if (!threshold && number("max")) threshold = 0.05 * *number("max");
  if (!threshold && number("median")) threshold = 0.75 * *number("median");
  if (!threshold) return {};
  return static_cast<float>(*threshold);
}

TypeOrReason type(const Value& config) {
  if (config["rounding"].as_string() == reference_rounding) return reference_reason;
  return NumberType{Ternary{config["scaling_factor"].as_bool(), given_threshold(config)}};
}

Rounder by_reference(const Value& config) {
  return reference_ternary(config["scaling_factor"].as_bool());
}

Field statistic(const char* name, const char* help) { return number_field(name, help).from(0); }

const Register<FormatRecord> registered{{
    .name = "ternary",
    .class_suffix = "Ternary",
    .summary = "-1, 0 and +1, plain or scaled",
    .schema = {{integer_field("width", "accepted for MASE's files; a ternary value has two bits")
                    .between(1, 64)
                    .without_effect(),
                boolean_field("scaling_factor",
                              "multiply by the mean magnitude of the values that are not zeroed",
                              false),
                statistic("threshold", "values up to this magnitude become 0"),
                statistic("mean", "threshold = 0.75 * mean"),
                statistic("max", "threshold = 0.05 * max"), statistic("maximum", "the same as max"),
                statistic("median", "threshold = 0.75 * median"), rounding_field(true),
                ste_field()}},
    .type = type,
    .make = by_reference,
    .precision = [](const Value&) { return std::vector<int64_t>{2}; },
    .ladder = [](double largest) -> std::vector<Value> {
      return {Dict{{"scaling_factor", true}}, Dict{{"scaling_factor", true}, {"max", largest}}};
    },
}};

}  // namespace
}  // namespace mase::ternary_format
