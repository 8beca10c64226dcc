// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/scaled.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "mase/formats/kernels/affine.h"
#include "mase/formats/kernels/codes.h"
#include "mase/formats/learned.h"

namespace mase {
namespace {

using Source = Scaled::Source;

ScaledSpec affine_spec(const Scaled& type, double lowest, double largest) {
  ScaledSpec spec = code_range(type);
  const double span = std::max(largest, 0.0) - std::min(lowest, 0.0);
  if (span == 0) return spec;
  // A step of few bits makes every value (k - z) * step a single-precision number, so that
  // quantising again changes nothing. Rounded up, the range still covers the data.
  int exponent = 0;
  const double fraction = std::frexp(span / (spec.high - spec.low), &exponent);
  const int bits = std::max(24 - type.width, 8);
  spec.step = std::ldexp(std::ceil(std::ldexp(fraction, bits)), exponent - bits);
  spec.zero =
      std::clamp(std::nearbyint(spec.low - std::min(lowest, 0.0) / spec.step), spec.low, spec.high);
  return spec;
}

// For values between these limits.
ScaledSpec fitted_spec(const Scaled& type, double lowest, double largest) {
  if (!type.affine) {
    ScaledSpec spec = code_range(type);
    const double magnitude = type.is_signed ? std::max(-lowest, largest) : largest;
    if (magnitude > 0) spec.step = magnitude / spec.high;
    return spec;
  }
  ScaledSpec spec = affine_spec(type, lowest, largest);
  // Where the rounded step leaves the last code unused, the rounded data would get another step:
  // take that one at once.
  for (int attempt = 0; attempt < 8; ++attempt) {
    const ScaledSpec next = affine_spec(type, scaled_reference(spec, static_cast<float>(lowest)),
                                        scaled_reference(spec, static_cast<float>(largest)));
    if (next.step == spec.step && next.zero == spec.zero) break;
    spec = next;
  }
  return spec;
}

// LSQ starts at 2 mean|x| / sqrt(largest code), over the finite values of a group. A group without
// any keeps the step it has.
double starting_step(const ScaledSpec& spec, const float* in, std::span<const Run> runs) {
  double total = 0;
  int64_t count = 0;
  for (const Run& run : runs)
    for (int64_t i = run.offset; i < run.offset + run.length; ++i) {
      if (!std::isfinite(in[i])) continue;
      total += std::fabs(static_cast<double>(in[i]));
      ++count;
    }
  return total > 0 ? 2 * total / static_cast<double>(count) / std::sqrt(spec.high) : spec.step;
}

void take_in(const float* in, size_t count, float& lowest, float& largest) {
  for (size_t i = 0; i < count; ++i) {
    if (!std::isfinite(in[i])) continue;
    lowest = std::min(lowest, in[i]);
    largest = std::max(largest, in[i]);
  }
}

template <auto range>
Rounder::Fit fit_of(const Scaled& type) {
  return [type](const float* in, std::span<const Run> runs) {
    float lowest = 0, largest = 0;
    for (const Run& run : runs)
      range(in + run.offset, static_cast<size_t>(run.length), lowest, largest);
    const ScaledSpec spec = fitted_spec(type, lowest, largest);
    const bool learned = type.source == Source::learned_scale;
    return Shared{learned ? starting_step(spec, in, runs) : spec.step, spec.zero};
  };
}

// The numbers of a list, or the one for all.
Shared given_shared(const Scaled& type, int64_t group) {
  const auto at = [&](const std::vector<double>& numbers) {
    return numbers.size() == 1 ? numbers[0] : numbers.at(static_cast<size_t>(group));
  };
  return {at(type.steps), type.zeros.empty() ? 0 : at(type.zeros)};
}

// The nearest number, decided in double precision.
void set_exact(Rounder& rounder, const Scaled& type) {
  ScaledSpec range = code_range(type);
  if (type.source == Source::learned_scale) range.low = type.is_signed ? -range.high - 1 : 0;
  const auto spec_of = [range](const GroupRun& run) {
    ScaledSpec spec = range;
    spec.step = run.shared[0];
    spec.zero = run.shared[1];
    return spec;
  };
  rounder.round = [spec_of](const GroupRun& run, const float* in, float* out, size_t count) {
    scaled_kernel(spec_of(run), in, out, count);
  };
  rounder.one = [spec_of](const GroupRun& run, float x, uint32_t) {
    return scaled_reference(spec_of(run), x);
  };
  if (type.source == Source::data || type.source == Source::learned_clip)
    rounder.sweep = [type, granularity = rounder.granularity](const float* in, float* out,
                                                              const Shape& shape) {
      const Grouping groups = grouping(shape, granularity);
      if (groups.outer != 1 || groups.groups < 2 || groups.row > 0) return false;
      ScaledRowsRule rule;
      rule.spec_of = [&](float low, float high) { return fitted_spec(type, low, high); };
      rule.symmetric = type.is_signed && !type.affine;
      rule.range = code_range(type);
      scaled_rows_kernel(rule, in, out, static_cast<size_t>(groups.groups),
                         static_cast<size_t>(groups.inner));
      return true;
    };
  if (type.width > 24) return;
  rounder.code_bits = type.width;
  rounder.to_codes = [spec_of, mask = (1u << type.width) - 1](const GroupRun& run, const float* in,
                                                              uint32_t* codes, size_t count) {
    scaled_codes_kernel(spec_of(run), mask, in, codes, count);
  };
  const CodeLayout layout{.width = type.width, .is_signed = type.is_signed};
  rounder.to_values = [spec_of, layout](const GroupRun& run, const uint32_t* codes, float* out,
                                        size_t count) {
    decode_kernel(layout, codes, out, count);
    scaled_values_kernel(spec_of(run), out, out, count);
  };
}

// The arithmetic of ONNX and QONNX, in single precision.
void set_affine(Rounder& rounder, const Scaled& type) {
  const ScaledSpec range = code_range(type);
  AffineSpec plain;
  plain.low = static_cast<float>(range.low);
  plain.high = static_cast<float>(range.high);
  plain.zero_first = type.arithmetic == Scaled::Arithmetic::zero_first;
  plain.rounding = type.rounding;
  const auto spec_of = [plain](const GroupRun& run) {
    AffineSpec spec = plain;
    spec.scale = static_cast<float>(run.shared[0]);
    spec.zero = static_cast<float>(run.shared[1]);
    return spec;
  };
  rounder.round = [spec_of](const GroupRun& run, const float* in, float* out, size_t count) {
    affine_kernel(spec_of(run), in, out, count);
  };
  rounder.one = [spec_of](const GroupRun& run, float x, uint32_t) {
    return affine_reference(spec_of(run), x);
  };
  // Codes are two's complement, or plain binary. None is NaN, which gets the code of zero.
  rounder.code_bits = type.width;
  const int64_t mask = (int64_t{1} << type.width) - 1;
  const bool is_signed = type.is_signed;
  rounder.to_codes = [spec_of, mask, is_signed](const GroupRun& run, const float* in,
                                                uint32_t* codes, size_t count) {
    const AffineSpec spec = spec_of(run);
    for (size_t i = 0; i < count; ++i) {
      const float x = std::isnan(in[i]) ? 0 : in[i];
      const float k = std::nearbyint(affine_reference(spec, x) / spec.scale + spec.zero);
      // Above 24 bits single precision rounds the largest code up, out of the range.
      const int64_t whole = std::min(static_cast<int64_t>(k), is_signed ? mask / 2 : mask);
      codes[i] = static_cast<uint32_t>(whole & mask);
    }
  };
  rounder.to_values = [spec_of, mask, is_signed](const GroupRun& run, const uint32_t* codes,
                                                 float* out, size_t count) {
    const AffineSpec spec = spec_of(run);
    for (size_t i = 0; i < count; ++i) {
      const bool negative = is_signed && codes[i] > mask / 2;
      const auto k = static_cast<float>(negative ? codes[i] - mask - 1 : codes[i]);
      out[i] = (k - spec.zero) * spec.scale;
    }
  };
}

// QONNX's Trunc rounds twice, so it is not the nearest number and has no codes of its own.
void set_truncated(Rounder& rounder, const Scaled& type) {
  const ScaledSpec range = code_range(type);
  const auto low = type.clamped ? static_cast<float>(range.low) : -HUGE_VALF;
  const auto high = type.clamped ? static_cast<float>(range.high) : HUGE_VALF;
  const auto scale = static_cast<float>(type.dropped_step);
  const auto zero = static_cast<float>(type.dropped_zero);
  const auto divisor = static_cast<float>(type.divisor);
  rounder.one = [=, rounding = type.rounding](const GroupRun& run, float x, uint32_t) {
    if (std::isnan(x)) return x;
    const float k = std::nearbyint(x / scale + zero) / divisor;
    return (round_to_whole(std::clamp(k, low, high), rounding) -
            static_cast<float>(run.shared[1])) *
           static_cast<float>(run.shared[0]);
  };
}

// The ends of the range for given numbers, in the arithmetic that rounds to them.
Limits given_limits(const Scaled& type, int64_t group) {
  const ScaledSpec range = code_range(type);
  const Shared own = given_shared(type, group);
  if (type.arithmetic == Scaled::Arithmetic::exact)
    return {(range.low - own[1]) * own[0], (range.high - own[1]) * own[0], own[0]};
  const auto step = static_cast<float>(own[0]), zero = static_cast<float>(own[1]);
  return {(static_cast<float>(range.low) - zero) * step,
          (static_cast<float>(range.high) - zero) * step, step};
}

}  // namespace

ScaledSpec code_range(const Scaled& type) {
  ScaledSpec spec;
  spec.high = std::ldexp(1.0, type.is_signed ? type.width - 1 : type.width) - 1;
  if (type.is_signed) spec.low = type.narrow ? -spec.high : -spec.high - 1;
  // ONNX leaves out the largest unsigned code.
  if (!type.is_signed && type.narrow && type.arithmetic != Scaled::Arithmetic::exact)
    spec.high -= 1;
  return spec;
}

Rounder Scaled::rounder(const Granularity& granularity) const {
  Rounder rounder;
  rounder.granularity = granularity;
  rounder.width = width;
  rounder.bits = width;
  rounder.shared_bits = 32 + (affine ? width : 0);
  // The numbers of ONNX's arithmetic stand in the config and nowhere else.
  if (arithmetic == Arithmetic::exact)
    rounder.kept = affine ? Rounder::Kept::scale_and_zero : Rounder::Kept::scale;
  if (source == Source::given) {
    rounder.groups = static_cast<int64_t>(std::max({steps.size(), zeros.size(), size_t{1}}));
    rounder.given = [type = *this](int64_t group) { return given_shared(type, group); };
    if (clamped && rounder.groups == 1) rounder.set_limits(given_limits(*this, 0));
    if (clamped && rounder.groups > 1)
      rounder.group_limits = [type = *this](int64_t group) { return given_limits(type, group); };
  } else {
    rounder.fit = fit_of<range_kernel>(*this);
    rounder.plain_fit = fit_of<take_in>(*this);
  }
  if (arithmetic == Arithmetic::exact)
    set_exact(rounder, *this);
  else if (arithmetic == Arithmetic::truncate)
    set_truncated(rounder, *this);
  else
    set_affine(rounder, *this);
  if (source == Source::learned_scale || source == Source::learned_clip)
    rounder.learned = learned_range(*this, granularity, rounder.fit);
  return rounder;
}

std::string Scaled::text() const {
  static const char* const sources[] = {"data", "learned step", "learned clip", "given"};
  static const char* const rules[] = {"", ", zero point before rounding",
                                      ", zero point after rounding", ", low bits dropped"};
  return fmt::format("{} scaled {}{}, step: {}{}", is_signed ? "signed" : "unsigned", width,
                     affine ? " affine" : "", sources[static_cast<size_t>(source)],
                     rules[static_cast<size_t>(arithmetic)]);
}

Rounder reference_scaled(const Scaled& like) {
  Rounder rounder = like.rounder({Granularity::Kind::row});
  const float low = like.is_signed ? -std::ldexp(1.0f, like.width - 1) : 0.0f;
  const auto high = static_cast<float>(code_range(like).high);
  rounder.sweep = {};
  rounder.round = {};
  rounder.code_bits = 0;
  rounder.fit = [codes = std::ldexp(1.0f, like.is_signed ? like.width - 1 : like.width)](
                    const float* in, std::span<const Run> runs) {
    float largest = 0;
    for (const Run& run : runs)
      for (int64_t i = run.offset; i < run.offset + run.length; ++i)
        largest = std::max(largest, std::fabs(in[i]));
    return Shared{codes / (largest + 1e-9f)};
  };
  rounder.plain_fit = {};
  rounder.one = [low, high](const GroupRun& run, float x, uint32_t) {
    const auto scale = static_cast<float>(run.shared[0]);
    return std::isnan(x) ? x : std::clamp(std::nearbyint(x * scale), low, high) / scale;
  };
  return rounder;
}

}  // namespace mase
