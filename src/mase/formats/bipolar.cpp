// SPDX-License-Identifier: Apache-2.0
// Two values, minus and plus a given scale: QONNX's BipolarQuant. 0 is positive.
#include <cmath>

#include "mase/formats/format.h"
#include "mase/formats/given.h"
#include "mase/formats/rounding.h"

namespace mase::bipolar_format {
namespace {

Rounder make(const Value& config) {
  const std::vector<double> given = given_numbers(config["scale"]);
  Rounder rounder;
  rounder.granularity = given_granularity(config, {"scale"});
  rounder.groups = static_cast<int64_t>(given.size());
  rounder.width = 1;
  rounder.bits = 1;
  rounder.shared_bits = 32;
  rounder.given = [scales = std::vector<float>(given.begin(), given.end())](int64_t group) {
    return Shared{scales.size() == 1 ? scales[0] : scales.at(static_cast<size_t>(group))};
  };
  rounder.one = [](const GroupRun& run, float x, uint32_t) {
    const auto scale = static_cast<float>(run.shared[0]);
    return std::isnan(x) ? x : x >= 0 ? scale : -scale;
  };
  rounder.round = [](const GroupRun& run, const float* in, float* out, size_t count) {
    const auto scale = static_cast<float>(run.shared[0]);
    for (size_t i = 0; i < count; ++i) out[i] = in[i] >= 0 ? scale : in[i] < 0 ? -scale : in[i];
  };
  rounder.code_bits = 1;
  rounder.to_codes = [](const GroupRun&, const float* in, uint32_t* codes, size_t count) {
    for (size_t i = 0; i < count; ++i) codes[i] = in[i] >= 0 || std::isnan(in[i]) ? 1 : 0;
  };
  rounder.to_values = [](const GroupRun& run, const uint32_t* codes, float* out, size_t count) {
    const auto scale = static_cast<float>(run.shared[0]);
    for (size_t i = 0; i < count; ++i) out[i] = codes[i] ? scale : -scale;
  };
  if (given.size() == 1) {
    const double scale = static_cast<float>(given[0]);
    rounder.set_limits({-scale, scale, scale});
  }
  return rounder;
}

const Register<FormatRecord> registered{{
    .name = "bipolar",
    .class_suffix = "Bipolar",
    .summary = "one bit: minus and plus a given scale",
    .help = "What BipolarQuant nodes of QONNX files become.",
    .schema = {[] {
      std::vector<Field> fields = {
          given_field(
              "scale", "the larger of the two values, or a list of them",
              [](double scale) { return std::isfinite(scale) && static_cast<float>(scale) > 0; },
              "a positive number"),
          ste_field()};
      fields[0].default_value = 1.0;
      for (Field& field : given_granularity_fields()) fields.push_back(std::move(field));
      return fields;
    }()},
    .type = [](const Value&) -> TypeOrReason { return "its two values are given, not -1 and 1"; },
    .make = make,
    .precision = [](const Value&) { return std::vector<int64_t>{1}; },
}};

}  // namespace
}  // namespace mase::bipolar_format
