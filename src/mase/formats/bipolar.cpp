// SPDX-License-Identifier: Apache-2.0
// Two values, minus and plus a given scale: QONNX's BipolarQuant. 0 is positive.
#include <cmath>

#include "mase/formats/given.h"
#include "mase/formats/rounding.h"

namespace mase::bipolar_format {
namespace {

Quantizer make(const Value& config) {
  const Granularity granularity = given_granularity(config, {"scale"});
  const std::vector<double> given = given_numbers(config["scale"]);
  const std::vector<float> scales(given.begin(), given.end());
  GivenRule rule;
  rule.groups = static_cast<int64_t>(scales.size());
  rule.width = 1;
  rule.block = given_block(config);
  rule.reference = [scales](int64_t group, float x) {
    const float scale = scales[static_cast<size_t>(group)];
    return std::isnan(x) ? x : x >= 0 ? scale : -scale;
  };
  rule.kernel = [scales](int64_t group, const float* in, float* out, size_t count) {
    const float scale = scales[static_cast<size_t>(group)];
    for (size_t i = 0; i < count; ++i) out[i] = in[i] >= 0 ? scale : in[i] < 0 ? -scale : in[i];
  };
  rule.code = [](int64_t, float x) { return x >= 0 ? 1u : 0u; };
  rule.value = [scales](int64_t group, uint32_t code) {
    const float scale = scales[static_cast<size_t>(group)];
    return code ? scale : -scale;
  };
  Quantizer q = given_quantizer(std::move(rule), granularity);
  if (scales.size() == 1) {
    q.largest = static_cast<double>(scales[0]);
    q.lowest = -*q.largest;
    q.smallest_positive = q.largest;
  }
  return q;
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
