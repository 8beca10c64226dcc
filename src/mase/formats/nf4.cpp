// SPDX-License-Identifier: Apache-2.0
// NF4 (Dettmers et al., "QLoRA", 2023): sixteen levels that are quantiles of a normal distribution,
// times the largest magnitude of a group of consecutive values.
#include <algorithm>
#include <cmath>

#include "mase/formats/format.h"
#include "mase/formats/given.h"

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

uint32_t code_of(const GroupRun& run, float x) {
  return run.shared[0] > 0 ? nearest(x / run.shared[0]) : uint32_t{7};
}
float value_of(const GroupRun& run, uint32_t code) {
  return static_cast<float>(levels[code & 15] * run.shared[0]);
}

Rounder make(const Value& config) {
  Rounder rounder;
  rounder.granularity = {.kind = Granularity::Kind::run, .size = config["group_size"].as_int()};
  rounder.width = 4;
  rounder.bits = 4;
  rounder.shared_bits = 32;
  const std::vector<double> given = given_numbers(config["step"]);
  if (given.empty()) {
    rounder.fit = [](const float* in, std::span<const Run> runs) {
      float largest = 0;
      for (const Run& run : runs)
        for (int64_t i = run.offset; i < run.offset + run.length; ++i)
          if (std::isfinite(in[i])) largest = std::max(largest, std::fabs(in[i]));
      return Shared{largest};
    };
  } else {
    rounder.groups = static_cast<int64_t>(given.size());
    rounder.given = [given](int64_t group) {
      return Shared{given.size() == 1 ? given[0] : given.at(static_cast<size_t>(group))};
    };
  }
  rounder.one = [](const GroupRun& run, float x, uint32_t) {
    return std::isnan(x) ? x : value_of(run, code_of(run, x));
  };
  rounder.code_bits = 4;
  rounder.kept = Rounder::Kept::scale;
  rounder.to_codes = [](const GroupRun& run, const float* in, uint32_t* codes, size_t count) {
    for (size_t i = 0; i < count; ++i) codes[i] = code_of(run, std::isnan(in[i]) ? 0.0f : in[i]);
  };
  rounder.to_values = [](const GroupRun& run, const uint32_t* codes, float* out, size_t count) {
    for (size_t i = 0; i < count; ++i) out[i] = value_of(run, codes[i]);
  };
  return with_scale_format(std::move(rounder), config);
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
