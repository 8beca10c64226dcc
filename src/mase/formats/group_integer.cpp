// SPDX-License-Identifier: Apache-2.0
// Integers in groups: so many consecutive values of a row share a scale (and a zero point), as
// GPTQ, AWQ and the low-bit files of language models have them. Steps come from the data as
// scale_integer's do, or are given.
#include <algorithm>
#include <cmath>
#include <limits>

#include "mase/base/fields.h"
#include "mase/formats/elementwise.h"
#include "mase/formats/given.h"
#include "mase/formats/runs.h"
#include "mase/formats/scaled.h"

namespace mase::group_integer_format {
namespace {

Quantizer make(const Value& config) {
  Scaled type;
  type.width = static_cast<int>(config["width"].as_int());
  type.affine = config["affine"].as_bool();
  type.is_signed = !type.affine;
  type.narrow = !type.affine;
  if (type.width == 1 && !type.affine)
    throw config_error(config, "width", "one signed bit has no symmetric range",
                       "give at least 2, or affine = true");
  const ScaledSpec range = code_range(type);
  const std::vector<double> steps = given_numbers(config["step"]),
                            zeros = given_numbers(config["zero_point"]);
  if (steps.size() != zeros.size() && !(zeros.empty() && !type.affine))
    throw config_error(config, "zero_point",
                       fmt::format("{} zero points for {} steps", zeros.size(), steps.size()),
                       type.affine ? "give as many of both" : "leave it out, or set affine");
  RunRule rule;
  rule.width = type.width;
  rule.per_group = type.affine ? 2 : 1;
  rule.scale = scale_format(config);
  rule.shared_bits =
      (rule.scale ? rule.scale->bits_per_value({1}) : 32.0) + (type.affine ? type.width : 0);
  for (size_t i = 0; i < steps.size(); ++i) {
    rule.given.push_back(steps[i]);
    if (!type.affine) continue;
    if (zeros[i] < range.low || zeros[i] > range.high)
      throw config_error(config, "zero_point",
                         fmt::format("{} is no code of {} bits", zeros[i], type.width),
                         fmt::format("give {} to {}", range.low, range.high));
    rule.given.push_back(zeros[i]);
  }
  rule.find = [fit = scaled_quantizer(type, {})](const float* in, int64_t count) {
    return fit.encode(in, {count}).scales;
  };
  const auto spec_of = [range](const std::vector<double>& numbers) {
    ScaledSpec spec = range;
    spec.step = numbers[0];
    if (numbers.size() > 1) spec.zero = numbers[1];
    return spec;
  };
  rule.round = [spec_of](const std::vector<double>& numbers, float x) {
    return scaled_reference(spec_of(numbers), x);
  };
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << type.width) - 1);
  rule.code = [spec_of, mask](const std::vector<double>& numbers, float x) {
    const ScaledSpec spec = spec_of(numbers);
    const double code = std::nearbyint(scaled_reference(spec, x) / spec.step + spec.zero);
    return static_cast<uint32_t>(static_cast<int64_t>(code)) & mask;
  };
  rule.value = [spec_of, mask, is_signed = type.is_signed](const std::vector<double>& numbers,
                                                           uint32_t code) {
    const ScaledSpec spec = spec_of(numbers);
    const double k = is_signed && code > mask / 2 ? static_cast<double>(code) - mask - 1.0 : code;
    constexpr double most = std::numeric_limits<float>::max();
    return static_cast<float>(
        std::clamp((std::max(k, spec.low) - spec.zero) * spec.step, -most, most));
  };
  return run_quantizer(std::move(rule), config["group_size"].as_int());
}

const Register<FormatRecord> registered{{
    .name = "group_integer",
    .class_suffix = "GroupInteger",
    .summary = "integers with a scale for every so many values of a row",
    .help = "What low-bit language models use: 4 bits in groups of 64. Symmetric, or affine with a "
            "zero point. A row is all that stands behind dimension 0.",
    .schema = {{width_field(1, 16, "bits of a code"), group_size_field(), scale_format_field(),
                boolean_field("affine", "use a zero point, so that the range need not be symmetric",
                              false),
                given_field(
                    "step", "the scales themselves, one per group: nothing is taken from the data",
                    [](double step) { return std::isfinite(step) && step > 0; },
                    "a positive number"),
                given_field(
                    "zero_point", "with step: the codes of zero",
                    [](double zero) { return zero == std::floor(zero); }, "a whole number")}},
    .type = [](const Value&) -> TypeOrReason { return "its groups are runs of a row's values"; },
    .make = make,
    .precision = [](const Value& config) { return std::vector<int64_t>{config["width"].as_int()}; },
    .ladder = [](double) -> std::vector<Value> {
      std::vector<Value> configs;
      for (const int width : {2, 3, 4, 8}) configs.push_back(Dict{{"width", width}});
      return configs;
    },
}};

}  // namespace
}  // namespace mase::group_integer_format
