// SPDX-License-Identifier: Apache-2.0
// Integers with a real scale taken from the data: per row of the last dimension (as MASE), per
// tensor or per channel; symmetric, or affine with a zero point.
//   symmetric: step = max|x| / (2^(w-1) - 1),  k in [-(2^(w-1)-1), 2^(w-1)-1]
//   affine:    step = (max - min) / (2^w - 1) with min <= 0 <= max,  x = (k - z) * step
// The scale may be learned instead (scale = "learned": Esser et al., "Learned step size
// quantization", 2020), or the end of the range (clip = "learned": Choi et al., "PACT", 2018).
// MASE (rounding = "reference") divides by 2^(w-1), so that every row's positive maximum saturates
// one step low.
#include <algorithm>
#include <cmath>
#include <vector>

#include "mase/formats/elementwise.h"
#include "mase/formats/groups.h"
#include "mase/formats/kernels/codes.h"
#include "mase/formats/kernels/scaled.h"
#include "mase/formats/learned.h"
#include "mase/formats/rounding.h"

namespace mase::scale_integer_format {
namespace {

struct Options {
  int width;
  bool is_signed, affine;
  bool learned_scale = false, learned_clip = false;
  std::string granularity;
  int64_t axis;
  ScaledSpec range;  // of the codes
};

// Symmetric codes do without the lowest number of two's complement; a learned step uses it.
ScaledSpec code_range(const Options& options) {
  ScaledSpec spec;
  spec.high = std::ldexp(1.0, options.is_signed ? options.width - 1 : options.width) - 1;
  const bool all = options.affine || options.learned_scale;
  if (options.is_signed) spec.low = all ? -spec.high - 1 : -spec.high;
  return spec;
}

ScaledSpec affine_spec(const Options& options, double lowest, double largest) {
  ScaledSpec spec = options.range;
  const double span = std::max(largest, 0.0) - std::min(lowest, 0.0);
  if (span == 0) return spec;
  // A step of few bits makes every value (k - z) * step a single-precision number, so that
  // quantising again changes nothing. Rounded up, the range still covers the data.
  int exponent = 0;
  const double fraction = std::frexp(span / (spec.high - spec.low), &exponent);
  const int bits = std::max(24 - options.width, 8);
  spec.step = std::ldexp(std::ceil(std::ldexp(fraction, bits)), exponent - bits);
  spec.zero =
      std::clamp(std::nearbyint(spec.low - std::min(lowest, 0.0) / spec.step), spec.low, spec.high);
  return spec;
}

ScaledSpec spec_of(const Options& options, double lowest, double largest) {
  if (!options.affine) {
    ScaledSpec spec = options.range;
    const double magnitude = options.is_signed ? std::max(-lowest, largest) : largest;
    if (magnitude > 0) spec.step = magnitude / spec.high;
    return spec;
  }
  ScaledSpec spec = affine_spec(options, lowest, largest);
  // Where the rounded step leaves the last code unused, the rounded data would get another step:
  // take that one at once.
  for (int attempt = 0; attempt < 8; ++attempt) {
    const ScaledSpec next = affine_spec(options, scaled_reference(spec, static_cast<float>(lowest)),
                                        scaled_reference(spec, static_cast<float>(largest)));
    if (next.step == spec.step && next.zero == spec.zero) break;
    spec = next;
  }
  return spec;
}

// The specs of all groups, in two passes over memory with what uses them.
std::vector<ScaledSpec> specs(const Options& options, const Grouping& groups, const float* in) {
  std::vector<ScaledSpec> result;
  for (int64_t g = 0; g < groups.groups; ++g) {
    float lowest = 0, largest = 0;
    for (int64_t o = 0; o < groups.outer; ++o)
      range_kernel(in + (o * groups.groups + g) * groups.inner, static_cast<size_t>(groups.inner),
                   lowest, largest);
    result.push_back(spec_of(options, lowest, largest));
    if (options.learned_scale)
      set_starting_step(
          result.back(), options.is_signed, [&](const auto& visit) { groups.for_each(g, visit); },
          in);
  }
  return result;
}

void reference_rows(const Options& options, const float* in, float* out, const Shape& shape) {
  const Grouping groups = grouping(shape, "row", 0);
  const float low = options.is_signed ? -std::ldexp(1.0f, options.width - 1) : 0.0f;
  const auto high = static_cast<float>(options.range.high);
  for (int64_t g = 0; g < groups.groups; ++g) {
    float largest = 0;
    groups.for_each(g, [&](int64_t i) { largest = std::max(largest, std::fabs(in[i])); });
    const float scale =
        std::ldexp(1.0f, options.is_signed ? options.width - 1 : options.width) / (largest + 1e-9f);
    groups.for_each(g, [&](int64_t i) {
      out[i] =
          std::isnan(in[i]) ? in[i] : std::clamp(std::nearbyint(in[i] * scale), low, high) / scale;
    });
  }
}

using GroupsOf = std::function<Grouping(const Shape&)>;

void add_codes(Quantizer& q, const Options& options, const GroupsOf& groups_of) {
  q.code_bits = options.width;
  const CodeLayout layout{.width = options.width, .is_signed = options.is_signed};
  const uint32_t mask = (1u << options.width) - 1;
  const size_t per_group = options.affine ? 2 : 1;  // step, zero point
  q.encode = [options, groups_of, mask](const float* in, const Shape& shape) {
    const Grouping groups = groups_of(shape);
    const auto all = specs(options, groups, in);
    Quantizer::Codes codes;
    codes.codes.resize(static_cast<size_t>(element_count(shape)));
    for (const ScaledSpec& spec : all) {
      codes.scales.push_back(spec.step);
      if (options.affine) codes.scales.push_back(spec.zero);
    }
    groups.for_each_run([&](int64_t g, int64_t at, size_t count) {
      scaled_codes_kernel(all[static_cast<size_t>(g)], mask, in + at, codes.codes.data() + at,
                          count);
    });
    return codes;
  };
  q.decode = [options, groups_of, layout, per_group](const Quantizer::Codes& codes, float* out,
                                                     const Shape& shape) {
    const Grouping groups = groups_of(shape);
    MASE_CHECK(codes.codes.size() == static_cast<size_t>(element_count(shape)) &&
                   codes.scales.size() == per_group * static_cast<size_t>(groups.groups),
               "{} codes and {} scales for shape {}", codes.codes.size(), codes.scales.size(),
               shape_text(shape));
    groups.for_each_run([&](int64_t g, int64_t at, size_t count) {
      const size_t first = per_group * static_cast<size_t>(g);
      ScaledSpec spec = options.range;
      spec.step = codes.scales[first];
      if (options.affine) spec.zero = codes.scales[first + 1];
      decode_kernel(layout, codes.codes.data() + at, out + at, count);
      scaled_values_kernel(spec, out + at, out + at, count);
    });
  };
}

Quantizer make(const Value& config) {
  Options options;
  options.width = static_cast<int>(config["width"].as_int());
  options.is_signed = config["is_signed"].as_bool();
  options.affine = config["affine"].as_bool();
  options.learned_scale = config["scale"].as_string() == "learned";
  options.learned_clip = config["clip"].as_string() == "learned";
  const bool learned = options.learned_scale || options.learned_clip;
  options.granularity = config["granularity"].is_null() ? (learned ? "tensor" : "row")
                                                        : config["granularity"].as_string();
  options.axis = config["axis"].as_int();
  options.range = code_range(options);
  if (options.width == 1 && options.is_signed && !options.affine)
    throw config_error(config, "width", "one signed bit has no symmetric range",
                       "give at least 2, or is_signed = false");
  if (options.learned_scale && options.learned_clip)
    throw config_error(config, "clip", "the scale is learned already",
                       "learn one of them: the range is the scale times the largest code");
  if (learned && options.width > learned_width_limit)
    throw config_error(
        config, "width",
        fmt::format("a learned range of {} bits has nothing to learn", options.width),
        fmt::format("give at most {}", learned_width_limit));
  if (learned && options.affine)
    throw config_error(config, "affine", "a learned range has no zero point",
                       "leave out affine, or the learned scale or clip");
  if (learned && config["rounding"].as_string() == reference_rounding)
    throw config_error(config, "rounding", "MASE has no learned range for this format",
                       "leave out rounding, or the learned scale or clip");
  const GroupsOf groups_of = [options](const Shape& shape) {
    return grouping(shape, options.granularity, options.axis);
  };
  Quantizer q;
  q.config = config;
  q.precision = {options.width};
  const double shared_bits = 32 + (options.affine ? options.width : 0);
  q.bits_per_value = [options, groups_of, shared_bits](const Shape& shape) {
    const int64_t values = element_count(shape);
    if (values == 0) return static_cast<double>(options.width);
    return options.width +
           shared_bits * static_cast<double>(groups_of(shape).groups) / static_cast<double>(values);
  };
  if (config["rounding"].as_string() == reference_rounding) {
    q.quantize = [options](const float* in, float* out, const Shape& shape) {
      reference_rows(options, in, out, shape);
    };
    q.reference = q.quantize;
    return q;
  }
  q.quantize = [options, groups_of](const float* in, float* out, const Shape& shape) {
    const Grouping groups = groups_of(shape);
    if (groups.outer == 1 && groups.groups > 1 && !options.learned_scale) {
      ScaledRowsRule rule;
      rule.spec_of = [&](float low, float high) { return spec_of(options, low, high); };
      rule.symmetric = options.is_signed && !options.affine;
      rule.range = options.range;
      scaled_rows_kernel(rule, in, out, static_cast<size_t>(groups.groups),
                         static_cast<size_t>(groups.inner));
      return;
    }
    const auto all = specs(options, groups, in);
    groups.for_each_run([&](int64_t g, int64_t at, size_t count) {
      scaled_kernel(all[static_cast<size_t>(g)], in + at, out + at, count);
    });
  };
  q.reference = [options, groups_of](const float* in, float* out, const Shape& shape) {
    const Grouping groups = groups_of(shape);
    for (int64_t g = 0; g < groups.groups; ++g) {
      double lowest = 0, largest = 0;
      groups.for_each(g, [&](int64_t i) {
        if (!std::isfinite(in[i])) return;
        lowest = std::min(lowest, static_cast<double>(in[i]));
        largest = std::max(largest, static_cast<double>(in[i]));
      });
      ScaledSpec spec = spec_of(options, lowest, largest);
      if (options.learned_scale)
        set_starting_step(
            spec, options.is_signed, [&](const auto& visit) { groups.for_each(g, visit); }, in);
      groups.for_each(g, [&](int64_t i) { out[i] = scaled_reference(spec, in[i]); });
    }
  };
  if (learned) {
    LearnedRange range;
    range.clip = options.learned_clip;
    range.spec = learned_range_spec(options.width, options.is_signed, range.clip);
    range.granularity = options.granularity;
    range.axis = options.axis;
    range.starting_specs = [options, groups_of](const float* in, const Shape& shape) {
      return specs(options, groups_of(shape), in);
    };
    q.learned = learned_range(std::move(range));
  }
  if (options.width <= 24) add_codes(q, options, groups_of);
  return q;
}

const Register<FormatRecord> registered{{
    .name = "scale_integer",
    .class_suffix = "ScaleInteger",
    .summary = "integers with a scale taken from the data, symmetric or affine",
    .help = "The scale covers the largest finite value of its group; infinities saturate. With "
            "scale = \"learned\" it is a parameter of the layer (weight_scale, data_in_scale), "
            "trained with the gradient of LSQ; with clip = \"learned\" the end of the range is "
            "(data_in_clip), with the gradient of PACT.",
    .schema = {{width_field(1, 32, "bits of a code"),
                {.name = "is_signed",
                 .type = FieldType::boolean,
                 .default_value = true,
                 .help = "signed codes; unsigned symmetric ones hold no negative value"},
                {.name = "granularity",
                 .type = FieldType::text,
                 .help = "what shares a scale: each row of the last dimension, the tensor, or each "
                         "entry of `axis`; row if not given, with a learned scale or clip tensor",
                 .choices = {"row", "tensor", "channel"}},
                {.name = "axis",
                 .type = FieldType::integer,
                 .default_value = 0,
                 .help = "the dimension of granularity = \"channel\""},
                {.name = "affine",
                 .type = FieldType::boolean,
                 .default_value = false,
                 .help = "use a zero point, so that the range need not be symmetric"},
                {.name = "scale",
                 .type = FieldType::text,
                 .default_value = "data",
                 .help = "where the scale comes from: the data each time, or training (LSQ)",
                 .choices = {"data", "learned"}},
                {.name = "clip",
                 .type = FieldType::text,
                 .default_value = "data",
                 .help = "where the range ends: at the largest value, or where training puts it "
                         "(PACT)",
                 .choices = {"data", "learned"}},
                {.name = "quantile",
                 .type = FieldType::number,
                 .help = "accepted and without effect, as in MASE"},
                rounding_field(true)}},
    .make = make,
    .ladder = [](double) -> std::vector<Value> {
      std::vector<Value> configs;
      for (const int width : {2, 3, 4, 5, 6, 8}) configs.push_back(Dict{{"width", width}});
      return configs;
    },
}};

}  // namespace
}  // namespace mase::scale_integer_format
