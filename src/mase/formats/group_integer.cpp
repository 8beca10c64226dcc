// SPDX-License-Identifier: Apache-2.0
// Integers in groups: so many consecutive values of a row share a scale (and a zero point), as
// GPTQ, AWQ and the low-bit files of language models have them. Steps come from the data as
// scale_integer's do, or are given.
#include <cmath>

#include "mase/base/fields.h"
#include "mase/formats/config.h"
#include "mase/formats/given.h"
#include "mase/formats/scaled.h"

namespace mase::group_integer_format {
namespace {

NumberType parse(const Value& config) {
  Scaled type;
  type.width = static_cast<int>(config["width"].as_int());
  type.affine = config["affine"].as_bool();
  type.is_signed = !type.affine;
  type.narrow = !type.affine;
  if (type.width == 1 && !type.affine)
    throw config_error(config, "width", "one signed bit has no symmetric range",
                       "give at least 2, or affine = true");
  type.steps = given_numbers(config["step"]);
  type.zeros = given_numbers(config["zero_point"]);
  if (!type.steps.empty()) type.source = Scaled::Source::given;
  if (type.steps.size() != type.zeros.size() && !(type.zeros.empty() && !type.affine))
    throw config_error(
        config, "zero_point",
        fmt::format("{} zero points for {} steps", type.zeros.size(), type.steps.size()),
        type.affine ? "give as many of both" : "leave it out, or set affine");
  const ScaledSpec range = code_range(type);
  for (const double zero : type.zeros)
    if (type.affine && (zero < range.low || zero > range.high))
      throw config_error(config, "zero_point",
                         fmt::format("{} is no code of {} bits", zero, type.width),
                         fmt::format("give {} to {}", range.low, range.high));
  if (!type.affine) type.zeros.clear();
  return {type, {.kind = Granularity::Kind::run, .size = config["group_size"].as_int()}};
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
    .type = [](const Value& config) -> TypeOrReason {
      const NumberType parsed = parse(config);
      if (scale_format(config)) return "its scales are rounded themselves";
      return parsed;
    },
    .make = [](const Value& config) { return with_scale_format(parse(config).rounder(), config); },
    .precision = [](const Value& config) { return std::vector<int64_t>{config["width"].as_int()}; },
    .ladder = [](double) -> std::vector<Value> {
      std::vector<Value> configs;
      for (const int width : {2, 3, 4, 8}) configs.push_back(Dict{{"width", width}});
      return configs;
    },
}};

}  // namespace
}  // namespace mase::group_integer_format
