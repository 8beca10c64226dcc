// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/scaled.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "mase/formats/groups.h"
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

struct ScaledGroups {
  Scaled type;
  Granularity granularity;

  Grouping of(const Shape& shape) const { return grouping(shape, granularity); }

  // The specs of all groups, in two passes over memory with what uses them.
  std::vector<ScaledSpec> specs(const Grouping& groups, const float* in) const {
    std::vector<ScaledSpec> result;
    for (int64_t g = 0; g < groups.groups; ++g) {
      if (type.source == Source::given) {
        result.push_back(given_spec(type, g));
        continue;
      }
      float lowest = 0, largest = 0;
      for (int64_t o = 0; o < groups.outer; ++o)
        range_kernel(in + (o * groups.groups + g) * groups.inner, static_cast<size_t>(groups.inner),
                     lowest, largest);
      result.push_back(fitted_spec(type, lowest, largest));
      start_learned(result.back(), groups, g, in);
    }
    return result;
  }

  void start_learned(ScaledSpec& spec, const Grouping& groups, int64_t g, const float* in) const {
    if (type.source == Source::learned_scale)
      set_starting_step(
          spec, type.is_signed, [&](const auto& visit) { groups.for_each(g, visit); }, in);
  }

  void quantize(const float* in, float* out, const Shape& shape) const {
    const Grouping groups = of(shape);
    const bool fitted = type.source == Source::data || type.source == Source::learned_clip;
    if (groups.outer == 1 && groups.groups > 1 && fitted) {
      ScaledRowsRule rule;
      rule.spec_of = [&](float low, float high) { return fitted_spec(type, low, high); };
      rule.symmetric = type.is_signed && !type.affine;
      rule.range = code_range(type);
      scaled_rows_kernel(rule, in, out, static_cast<size_t>(groups.groups),
                         static_cast<size_t>(groups.inner));
      return;
    }
    if (type.source == Source::given) {
      groups.for_each_run([&](int64_t g, int64_t at, size_t count) {
        scaled_kernel(given_spec(type, g), in + at, out + at, count);
      });
      return;
    }
    const auto all = specs(groups, in);
    groups.for_each_run([&](int64_t g, int64_t at, size_t count) {
      scaled_kernel(all[static_cast<size_t>(g)], in + at, out + at, count);
    });
  }

  void reference(const float* in, float* out, const Shape& shape) const {
    const Grouping groups = of(shape);
    for (int64_t g = 0; g < groups.groups; ++g) {
      ScaledSpec spec;
      if (type.source == Source::given) {
        spec = given_spec(type, g);
      } else {
        double lowest = 0, largest = 0;
        groups.for_each(g, [&](int64_t i) {
          if (!std::isfinite(in[i])) return;
          lowest = std::min(lowest, static_cast<double>(in[i]));
          largest = std::max(largest, static_cast<double>(in[i]));
        });
        spec = fitted_spec(type, lowest, largest);
        start_learned(spec, groups, g, in);
      }
      groups.for_each(g, [&](int64_t i) { out[i] = scaled_reference(spec, in[i]); });
    }
  }
};

void add_codes(Quantizer& q, const ScaledGroups& own) {
  const Scaled& type = own.type;
  q.code_bits = type.width;
  const CodeLayout layout{.width = type.width, .is_signed = type.is_signed};
  const uint32_t mask = (1u << type.width) - 1;
  const size_t per_group = type.affine ? 2 : 1;  // step, zero point
  q.encode = [own, mask](const float* in, const Shape& shape) {
    const Grouping groups = own.of(shape);
    const auto all = own.specs(groups, in);
    Quantizer::Codes codes;
    codes.codes.resize(static_cast<size_t>(element_count(shape)));
    for (const ScaledSpec& spec : all) {
      codes.scales.push_back(spec.step);
      if (own.type.affine) codes.scales.push_back(spec.zero);
    }
    groups.for_each_run([&](int64_t g, int64_t at, size_t count) {
      scaled_codes_kernel(all[static_cast<size_t>(g)], mask, in + at, codes.codes.data() + at,
                          count);
    });
    return codes;
  };
  q.decode = [own, layout, per_group](const Quantizer::Codes& codes, float* out,
                                      const Shape& shape) {
    const Grouping groups = own.of(shape);
    MASE_CHECK(codes.codes.size() == static_cast<size_t>(element_count(shape)) &&
                   codes.scales.size() == per_group * static_cast<size_t>(groups.groups),
               "{} codes and {} scales for shape {}", codes.codes.size(), codes.scales.size(),
               shape_text(shape));
    groups.for_each_run([&](int64_t g, int64_t at, size_t count) {
      const size_t first = per_group * static_cast<size_t>(g);
      ScaledSpec spec = code_range(own.type);
      spec.step = codes.scales[first];
      if (own.type.affine) spec.zero = codes.scales[first + 1];
      decode_kernel(layout, codes.codes.data() + at, out + at, count);
      scaled_values_kernel(spec, out + at, out + at, count);
    });
  };
}

void reference_rows(const Scaled& type, const float* in, float* out, const Shape& shape) {
  const Grouping groups = grouping(shape, {Granularity::Kind::row});
  const float low = type.is_signed ? -std::ldexp(1.0f, type.width - 1) : 0.0f;
  const auto high = static_cast<float>(code_range(type).high);
  for (int64_t g = 0; g < groups.groups; ++g) {
    float largest = 0;
    groups.for_each(g, [&](int64_t i) { largest = std::max(largest, std::fabs(in[i])); });
    const float scale =
        std::ldexp(1.0f, type.is_signed ? type.width - 1 : type.width) / (largest + 1e-9f);
    groups.for_each(g, [&](int64_t i) {
      out[i] =
          std::isnan(in[i]) ? in[i] : std::clamp(std::nearbyint(in[i] * scale), low, high) / scale;
    });
  }
}

}  // namespace

ScaledSpec code_range(const Scaled& type) {
  ScaledSpec spec;
  spec.high = std::ldexp(1.0, type.is_signed ? type.width - 1 : type.width) - 1;
  if (type.is_signed) spec.low = type.narrow ? -spec.high : -spec.high - 1;
  return spec;
}

ScaledSpec given_spec(const Scaled& type, int64_t group) {
  ScaledSpec spec = code_range(type);
  const auto at = [&](const std::vector<double>& numbers) {
    return numbers.size() == 1 ? numbers[0] : numbers.at(static_cast<size_t>(group));
  };
  spec.step = at(type.steps);
  if (!type.zeros.empty()) spec.zero = at(type.zeros);
  return spec;
}

Quantizer scaled_quantizer(const Scaled& type, const Granularity& granularity) {
  const ScaledGroups own{type, granularity};
  Quantizer q;
  q.quantize = [own](const float* in, float* out, const Shape& shape) {
    own.quantize(in, out, shape);
  };
  q.reference = [own](const float* in, float* out, const Shape& shape) {
    own.reference(in, out, shape);
  };
  if (type.source == Source::learned_scale || type.source == Source::learned_clip)
    q.learned = learned_range(type, granularity, [own](const float* in, const Shape& shape) {
      return own.specs(own.of(shape), in);
    });
  if (type.width <= 24) add_codes(q, own);
  return q;
}

Quantizer reference_scaled_quantizer(const NumberType& like) {
  Quantizer q;
  q.quantize = [type = *like.as<Scaled>()](const float* in, float* out, const Shape& shape) {
    reference_rows(type, in, out, shape);
  };
  q.reference = q.quantize;
  set_bits_and_limits(q, like);
  return q;
}

}  // namespace mase
