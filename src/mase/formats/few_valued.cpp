// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/few_valued.h"

#include <cmath>
#include <limits>

#include "mase/formats/kernels/threshold.h"

namespace mase {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// The mean magnitude of a group's finite values above a threshold; `empty` if there are none.
double mean_magnitude(const float* in, std::span<const Run> runs, float threshold, double empty) {
  MagnitudeSum total;
  for (const Run& run : runs)
    add_magnitudes(in + run.offset, static_cast<size_t>(run.length), threshold, total);
  return total.count ? total.sum / static_cast<double>(total.count) : empty;
}

// Rules that a threshold kernel follows. `spec_of` says what it compares with: what a group shares
// is the scale, then the threshold.
template <class SpecOf>
void set_thresholds(Rounder& rounder, SpecOf spec_of) {
  rounder.round = [spec_of](const GroupRun& run, const float* in, float* out, size_t count) {
    threshold_kernel(spec_of(static_cast<float>(run.shared[0]), static_cast<float>(run.shared[1])),
                     in, out, count);
  };
}

// Scales and thresholds found in the entries of dimension 0 come back from codes: `multiple` is the
// value of a code / scale.
template <class CodeOf, class Multiple>
void set_grouped_codes(Rounder& rounder, int bits, CodeOf code_of, Multiple multiple) {
  rounder.granularity = {Granularity::Kind::first};
  rounder.one = [code_of, multiple](const GroupRun& run, float x, uint32_t element) {
    return std::isnan(x) ? x
                         : multiple(code_of(run, x, element)) * static_cast<float>(run.shared[0]);
  };
  rounder.code_bits = bits;
  rounder.kept = Rounder::Kept::scale;
  rounder.to_codes = [code_of](const GroupRun& run, const float* in, uint32_t* codes,
                               size_t count) {
    for (size_t i = 0; i < count; ++i)
      codes[i] = std::isnan(in[i]) ? 0 : code_of(run, in[i], run.first + static_cast<uint32_t>(i));
  };
  rounder.to_values = [multiple](const GroupRun& run, const uint32_t* codes, float* out,
                                 size_t count) {
    const auto scale = static_cast<float>(run.shared[0]);
    for (size_t i = 0; i < count; ++i) out[i] = multiple(codes[i]) * scale;
  };
}

// Draws take the place of the kernel.
void draw_one_by_one(Rounder& rounder) {
  rounder.stochastic = true;
  rounder.round = {};
}

bool drawn_high(float x, uint32_t key, uint32_t element) {
  return std::fmin(std::fmax((x + 1) / 2, 0.0f), 1.0f) > stochastic_uniform(key, element);
}

// `seed`: signs are drawn.
Rounder binary_rounder(const Binary& type, std::optional<uint64_t> seed) {
  Rounder rounder;
  rounder.width = 1;
  rounder.bits = 1;
  const bool symmetric = !type.one_sided;
  const auto high = [seed, symmetric](const GroupRun& run, float x, uint32_t element) {
    if (seed) return drawn_high(x, stochastic_key(*seed, run.draw), element);
    return symmetric ? x >= 0 : x > 0;
  };
  if (!type.scaled) {
    rounder.set_limits({-1, 1, 1});
    rounder.one = [high](const GroupRun& run, float x, uint32_t element) {
      return std::isnan(x) ? x : high(run, x, element) ? 1.0f : -1.0f;
    };
    set_thresholds(rounder, [](float, float) { return ThresholdSpec{}; });
    if (seed) draw_one_by_one(rounder);
    set_codes(
        rounder, 1, [](float x) { return x > 0 ? 1u : 0u; },
        [](uint32_t code) { return code & 1 ? 1.0f : -1.0f; });
    return rounder;
  }
  rounder.shared_bits = 32;
  rounder.fit = [](const float* in, std::span<const Run> runs) {
    return Shared{static_cast<float>(mean_magnitude(in, runs, -1, 0))};
  };
  set_thresholds(rounder, [symmetric](float scale, float) {
    return ThresholdSpec{.above = symmetric ? 0 : std::numeric_limits<float>::denorm_min(),
                         .below = symmetric ? 0 : -infinity,
                         .low = -scale,
                         .middle = 0,
                         .high = scale};
  });
  set_grouped_codes(
      rounder, 1,
      [high](const GroupRun& run, float x, uint32_t element) {
        return high(run, x, element) ? 1u : 0u;
      },
      [symmetric](uint32_t code) { return code & 1    ? 1.0f
                                          : symmetric ? -1.0f
                                                      : 0.0f; });
  if (seed) draw_one_by_one(rounder);
  return rounder;
}

ThresholdSpec ternary_thresholds(float scale, float threshold) {
  return {.above = std::nextafter(threshold, infinity),
          .below = -threshold,
          .low = -scale,
          .middle = 0 * scale,
          .high = scale};
}

uint32_t ternary_code(float sign) { return sign > 0 ? 1 : sign < 0 ? 3 : 0; }
float ternary_value(uint32_t code) {
  return (code & 3) == 1 ? 1.0f : (code & 3) == 3 ? -1.0f : 0.0f;
}

// `scale_of_nothing`: where every value is zeroed.
Rounder ternary_rounder(const Ternary& type, double scale_of_nothing) {
  Rounder rounder;
  rounder.width = 2;
  rounder.bits = 2;
  if (!type.scaled) rounder.set_limits({-1, 1, 1});
  set_thresholds(rounder, ternary_thresholds);
  if (!type.scaled && type.threshold) {
    const ThresholdSpec spec = ternary_thresholds(1, *type.threshold);
    rounder.given = [threshold = *type.threshold](int64_t) { return Shared{1, threshold}; };
    rounder.one = [spec](const GroupRun&, float x, uint32_t) {
      return threshold_reference(spec, x);
    };
    set_codes(rounder, 2, ternary_code, ternary_value);
    return rounder;
  }
  if (type.scaled) rounder.shared_bits = 32;
  rounder.fit = [type, scale_of_nothing](const float* in, std::span<const Run> runs) {
    const auto threshold = type.threshold
                               ? *type.threshold
                               : static_cast<float>(0.75 * mean_magnitude(in, runs, -1, 0));
    const auto scale =
        type.scaled ? static_cast<float>(mean_magnitude(in, runs, threshold, scale_of_nothing))
                    : 1.0f;
    return Shared{scale, threshold};
  };
  set_grouped_codes(
      rounder, 2,
      [](const GroupRun& run, float x, uint32_t) {
        return ternary_code(
            threshold_reference(ternary_thresholds(1, static_cast<float>(run.shared[1])), x));
      },
      ternary_value);
  return rounder;
}

}  // namespace

Rounder Binary::rounder(const Granularity&) const { return binary_rounder(*this, {}); }
std::string Binary::text() const { return scaled ? "binary, scaled" : "binary"; }

Rounder Ternary::rounder(const Granularity&) const { return ternary_rounder(*this, 0); }
std::string Ternary::text() const { return scaled ? "ternary, scaled" : "ternary"; }

Rounder stochastic_binary(const Binary& like, uint64_t seed) { return binary_rounder(like, seed); }

Rounder reference_ternary(bool scaled) {
  return ternary_rounder({scaled, {}}, std::numeric_limits<double>::quiet_NaN());
}

}  // namespace mase
