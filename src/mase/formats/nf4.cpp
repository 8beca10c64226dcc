// SPDX-License-Identifier: Apache-2.0
// NF4 (Dettmers et al., "QLoRA", 2023): sixteen levels that are quantiles of a normal distribution,
// times the largest magnitude of a group of consecutive values.
#include <algorithm>
#include <cmath>

#include "mase/formats/given.h"
#include "mase/formats/runs.h"

namespace mase::nf4_format {
namespace {

// As the reference implementation (bitsandbytes) has them.
constexpr float levels[16] = {-1.0f,
                              -0.6961928009986877f,
                              -0.5250730514526367f,
                              -0.39491748809814453f,
                              -0.28444138169288635f,
                              -0.18477343022823334f,
                              -0.09105003625154495f,
                              0.0f,
                              0.07958029955625534f,
                              0.16093020141124725f,
                              0.24611230194568634f,
                              0.33791524171829224f,
                              0.44070982933044434f,
                              0.5626170039176941f,
                              0.7229568362236023f,
                              1.0f};

uint32_t nearest(double share) {
  const float* above = std::lower_bound(levels, levels + 16, share);
  if (above == levels) return 0;
  if (above == levels + 16) return 15;
  const auto at = static_cast<uint32_t>(above - levels);
  return share - above[-1] <= *above - share ? at - 1 : at;
}

Quantizer make(const Value& config) {
  RunRule rule;
  rule.width = 4;
  rule.scale = scale_format(config);
  if (rule.scale) rule.shared_bits = rule.scale->bits_per_value({1});
  rule.given = given_numbers(config["step"]);
  rule.find = [](const float* in, int64_t count) {
    float largest = 0;
    for (int64_t i = 0; i < count; ++i)
      if (std::isfinite(in[i])) largest = std::max(largest, std::fabs(in[i]));
    return std::vector<double>{largest};
  };
  rule.code = [](const std::vector<double>& numbers, float x) {
    return numbers[0] > 0 ? nearest(x / numbers[0]) : uint32_t{7};
  };
  rule.value = [](const std::vector<double>& numbers, uint32_t code) {
    return static_cast<float>(levels[code & 15] * numbers[0]);
  };
  rule.round = [code = rule.code, value = rule.value](const std::vector<double>& numbers, float x) {
    return value(numbers, code(numbers, x));
  };
  return run_quantizer(std::move(rule), config["group_size"].as_int());
}

const Register<FormatRecord> registered{{
    .name = "nf4",
    .class_suffix = "NF4",
    .summary = "sixteen quantiles of a normal distribution times a group's largest magnitude",
    .schema = {{group_size_field(), scale_format_field(),
                given_field(
                    "step", "the largest magnitudes themselves, one per group",
                    [](double step) { return std::isfinite(step) && step >= 0; },
                    "a number from 0 up")}},
    .type = [](const Value&) -> TypeOrReason { return "its levels are no regular numbers"; },
    .make = make,
    .precision = [](const Value&) { return std::vector<int64_t>{4}; },
    .ladder = [](double) -> std::vector<Value> { return {Dict{}}; },
}};

}  // namespace
}  // namespace mase::nf4_format
