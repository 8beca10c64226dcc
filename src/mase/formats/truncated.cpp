// SPDX-License-Identifier: Apache-2.0
// Integers with a given scale whose low bits are dropped: QONNX's Trunc, which stands behind
// average pools.
//   k = round_half_even(x / scale + zero) / 2^dropped, clamped to `width` bits if there is one,
//   value = (round(k) - zero / 2^dropped) * output_scale
// In QONNX's first version (keeps_scale) zero point and scale stay, and nothing is clamped. It
// rounds twice, so it is not the nearest number and has no codes of its own.
#include <algorithm>
#include <cmath>

#include "mase/base/fields.h"
#include "mase/formats/elementwise.h"
#include "mase/formats/given.h"

namespace mase::truncated_format {
namespace {

struct Spec {
  float scale, zero, divisor, out_scale, out_zero, low, high;
  Rounding rounding;
};

float rounded(const Spec& spec, float x) {
  if (std::isnan(x)) return x;
  const float k = std::nearbyint(x / spec.scale + spec.zero) / spec.divisor;
  return (round_to_whole(std::clamp(k, spec.low, spec.high), spec.rounding) - spec.out_zero) *
         spec.out_scale;
}

Spec spec_of(const Value& config) {
  Spec spec{};
  spec.scale = static_cast<float>(config["scale"].as_double());
  spec.zero = static_cast<float>(config["zero_point"].as_double());
  spec.rounding = rounding_from_name(config["rounding"].as_string());
  if (spec.rounding == Rounding::stochastic)
    throw config_error(config, "rounding", "nothing is drawn here", "name another");
  spec.low = -INFINITY;
  spec.high = INFINITY;
  if (config["keeps_scale"].as_bool()) {
    spec.divisor = std::exp2(static_cast<float>(config["dropped"].as_int()));
    spec.out_scale = spec.scale;
    spec.out_zero = spec.zero;
    return spec;
  }
  spec.out_scale = static_cast<float>(config["output_scale"].as_double());
  spec.divisor = std::exp2(std::nearbyint(std::log2(spec.out_scale / spec.scale)));
  spec.out_zero = spec.zero / spec.divisor;
  const bool is_signed = config["is_signed"].as_bool(), narrow = config["narrow"].as_bool();
  const int bits = static_cast<int>(config["width"].as_int()) - (is_signed ? 1 : 0);
  spec.high = std::ldexp(1.0f, bits) - (!is_signed && narrow ? 2 : 1);
  spec.low = is_signed ? -std::ldexp(1.0f, bits) + (narrow ? 1 : 0) : 0;
  return spec;
}

Quantizer make(const Value& config) {
  const Spec spec = spec_of(config);
  GivenRule rule;
  rule.width = static_cast<int>(config["width"].as_int());
  rule.reference = [spec](int64_t, float x) { return rounded(spec, x); };
  rule.kernel = [spec](int64_t, const float* in, float* out, size_t count) {
    for (size_t i = 0; i < count; ++i) out[i] = rounded(spec, in[i]);
  };
  return given_quantizer(std::move(rule), {});
}

std::optional<std::string> not_positive(const Value& value) {
  if (std::isfinite(value.as_double()) && static_cast<float>(value.as_double()) > 0) return {};
  return "expected a positive number";
}

const Register<FormatRecord> registered{{
    .name = "truncated",
    .class_suffix = "Truncated",
    .summary = "integers with a given scale whose low bits are dropped, as QONNX drops them",
    .help = "What Trunc nodes of QONNX files become.",
    .schema = {{width_field(1, 24, "bits that are left"),
                number_field("scale", "the value of one step before", 1.0).checked(not_positive),
                number_field("zero_point", "the code of zero before", 0.0),
                integer_field("dropped", "how many bits, with keeps_scale", 0).between(0, 24),
                boolean_field("keeps_scale",
                              "scale and zero point stay as they are; nothing is clamped", false),
                number_field("output_scale",
                             "the value of one step after; says how many bits are dropped", 1.0)
                    .checked(not_positive),
                boolean_field("is_signed", "the range of `width` bits is signed", true),
                boolean_field("narrow", "leave out the lowest code", false), rounding_field(false),
                ste_field()}},
    .type = [](const Value&) -> TypeOrReason { return "it drops bits of another format's codes"; },
    .make = make,
    .precision = [](const Value& config) { return std::vector<int64_t>{config["width"].as_int()}; },
    .ladder =
        [](double largest) {
          std::vector<Value> configs;
          for (const int width : {8, 4}) {
            const double needed = std::max(largest, 1e-6) / (std::ldexp(1.0, width - 1) - 1);
            const double step = std::exp2(std::ceil(std::log2(needed)));
            configs.push_back(Dict{{"width", width}, {"scale", step / 2}, {"output_scale", step}});
          }
          return configs;
        },
}};

}  // namespace
}  // namespace mase::truncated_format
