// SPDX-License-Identifier: Apache-2.0
// -1, 0 and +1 (ternary weight networks: Li and Liu, 2016): +1 above the threshold, -1 below minus
// the threshold. The threshold is given, or 0.75 * mean, 0.05 * max or 0.75 * median of magnitudes
// given, or 0.75 times the mean magnitude of the values under the same first index. scaling_factor
// multiplies by the mean magnitude of the values that are not zeroed.
//
// MASE (rounding = "reference") ignores what is given and always takes the threshold from the data;
// an empty selection scales by NaN there and by 0 here. Any rank; a vector is one group.
#include <cmath>
#include <limits>
#include <optional>

#include "mase/formats/elementwise.h"
#include "mase/formats/grouped.h"

namespace mase::ternary_format {
namespace {

ThresholdSpec thresholds_of(float threshold, float scale) {
  return {.above = std::nextafter(threshold, std::numeric_limits<float>::infinity()),
          .below = -threshold,
          .low = -scale,
          .middle = 0 * scale,
          .high = scale};
}

uint32_t ternary_code(float sign) { return sign > 0 ? 1 : sign < 0 ? 3 : 0; }
float ternary_value(uint32_t code) {
  return (code & 3) == 1 ? 1.0f : (code & 3) == 3 ? -1.0f : 0.0f;
}

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

struct GroupedTernary {
  std::optional<float> threshold;  // taken from the data if not given
  bool scaled;
  double scale_of_nothing;  // where every value is zeroed
  int bits = 2;
  bool stochastic = false;
  uint64_t seed = 0;

  GroupFit fit(const Grouping& groups, int64_t group, const float* in) const {
    GroupFit result;
    result.threshold = threshold
                           ? *threshold
                           : static_cast<float>(0.75 * mean_magnitude(groups, group, in, -1, 0));
    if (scaled)
      result.scale =
          static_cast<float>(mean_magnitude(groups, group, in, result.threshold, scale_of_nothing));
    return result;
  }
  uint32_t code_of(float x, const GroupFit& fit, uint32_t, int64_t) const {
    return ternary_code(threshold_reference(thresholds_of(fit.threshold, 1), x));
  }
  float multiple(uint32_t code) const { return ternary_value(code); }
  ThresholdSpec thresholds(const GroupFit& fit) const {
    return thresholds_of(fit.threshold, fit.scale);
  }
};

Quantizer make(const Value& config) {
  const bool by_reference = config["rounding"].as_string() == reference_rounding;
  const bool scaled = config["scaling_factor"].as_bool();
  std::optional<float> threshold = given_threshold(config);
  if (by_reference) threshold.reset();
  Quantizer quantizer;
  if (threshold && !scaled) {
    ElementwiseFormat format;
    const ThresholdSpec spec = thresholds_of(*threshold, 1);
    format.reference = [spec](float x, uint64_t, uint32_t) { return threshold_reference(spec, x); };
    format.kernel = [spec](const float* in, float* out, size_t count, uint64_t) {
      threshold_kernel(spec, in, out, count);
    };
    format.bits = 2;
    format.coding = coding_of(2, ternary_code, ternary_value);
    quantizer = make_elementwise(std::move(format), config);
    quantizer.precision = {2};
  } else {
    const double nothing = by_reference ? std::numeric_limits<double>::quiet_NaN() : 0;
    quantizer = make_grouped(GroupedTernary{threshold, scaled, nothing}, config);
  }
  if (!scaled) {
    quantizer.lowest = -1;
    quantizer.largest = 1;
    quantizer.smallest_positive = 1;
    if (config["ste"].as_string() == "clipped") set_clipped_gradient(quantizer, -1, 1);
  }
  return quantizer;
}

Field statistic(const char* name, const char* help) {
  return {.name = name, .type = FieldType::number, .help = help, .minimum = 0};
}

const Register<FormatRecord> registered{{
    .name = "ternary",
    .class_suffix = "Ternary",
    .summary = "-1, 0 and +1, plain or scaled",
    .schema = {{{.name = "width",
                 .type = FieldType::integer,
                 .help = "accepted for MASE's files; a ternary value has two bits",
                 .minimum = 1,
                 .maximum = 64},
                {.name = "scaling_factor",
                 .type = FieldType::boolean,
                 .default_value = false,
                 .help = "multiply by the mean magnitude of the values that are not zeroed"},
                statistic("threshold", "values up to this magnitude become 0"),
                statistic("mean", "threshold = 0.75 * mean"),
                statistic("max", "threshold = 0.05 * max"),
                statistic("maximum", "the same as max"),
                statistic("median", "threshold = 0.75 * median"),
                rounding_field(true),
                ste_field()}},
    .make = make,
    .ladder = [](double largest) -> std::vector<Value> {
      return {Dict{{"scaling_factor", true}}, Dict{{"scaling_factor", true}, {"max", largest}}};
    },
}};

}  // namespace
}  // namespace mase::ternary_format
