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
#include "mase/formats/groups.h"
#include "mase/formats/rounding.h"

namespace mase {
namespace {

float ternary(float x, float threshold) {
  return x > threshold ? 1.0f : x < -threshold ? -1.0f : std::isnan(x) ? x : 0.0f;
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

// The threshold of one group from the data, in single precision as MASE has it.
float data_threshold(const Grouping& groups, int64_t group, const float* in) {
  double sum = 0;
  int64_t finite = 0;
  groups.for_each(group, [&](int64_t i) {
    if (!std::isfinite(in[i])) return;
    sum += std::fabs(in[i]);
    ++finite;
  });
  return static_cast<float>(finite ? 0.75 * sum / static_cast<double>(finite) : 0.0);
}

Quantizer make(const Value& config) {
  const bool by_reference = config["rounding"].as_string() == reference_rounding;
  const bool scaled = config["scaling_factor"].as_bool();
  std::optional<float> threshold = given_threshold(config);
  if (by_reference) threshold.reset();
  const auto code_of = [](float x) { return x > 0 ? 1u : x < 0 ? 3u : 0u; };
  const auto value_of = [](uint32_t code) {
    return (code & 3) == 1 ? 1.0f : (code & 3) == 3 ? -1.0f : 0.0f;
  };
  if (threshold && !scaled) {
    ElementwiseFormat format;
    format.reference = [t = *threshold](float x, uint64_t, uint32_t) { return ternary(x, t); };
    format.kernel = [t = *threshold](const float* in, float* out, size_t count, uint64_t) {
      for (size_t i = 0; i < count; ++i) out[i] = ternary(in[i], t);
    };
    format.bits = 2;
    format.code_bits = 2;
    format.code_of = code_of;
    format.value_of = value_of;
    format.lowest = -1;
    format.largest = 1;
    format.smallest_positive = 1;
    Quantizer quantizer = make_elementwise(std::move(format), config);
    quantizer.precision = {2};
    return quantizer;
  }
  Quantizer q;
  q.config = config;
  q.precision = {2};
  q.quantize = [=](const float* in, float* out, const Shape& shape) {
    const Grouping groups = first_dimension_groups(shape);
    for (int64_t g = 0; g < groups.groups; ++g) {
      const float limit = threshold ? *threshold : data_threshold(groups, g, in);
      float scale = 1;
      if (scaled) {
        double sum = 0;
        int64_t kept = 0;
        groups.for_each(g, [&](int64_t i) {
          if (!std::isfinite(in[i]) || !(std::fabs(in[i]) > limit)) return;
          sum += std::fabs(in[i]);
          ++kept;
        });
        scale = kept ? static_cast<float>(sum / static_cast<double>(kept))
                     : (by_reference ? std::numeric_limits<float>::quiet_NaN() : 0.0f);
      }
      groups.for_each(g, [&](int64_t i) {
        const float t = ternary(in[i], limit);
        out[i] = scaled ? t * scale : t;
      });
    }
  };
  q.reference = q.quantize;
  q.bits_per_value = [scaled](const Shape& shape) {
    const int64_t values = element_count(shape);
    return values && scaled ? 2 + 32 * static_cast<double>(first_dimension_groups(shape).groups) /
                                      static_cast<double>(values)
                            : 2.0;
  };
  if (!scaled) {
    q.lowest = -1;
    q.largest = 1;
    q.smallest_positive = 1;
  }
  return q;
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
    .ladder = [](double) -> std::vector<Value> {
      return {Dict{{"scaling_factor", true}}};
    },
}};

}  // namespace
}  // namespace mase
