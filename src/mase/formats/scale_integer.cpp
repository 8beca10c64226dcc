// SPDX-License-Identifier: Apache-2.0
// Integers with a real scale taken from the data: per row of the last dimension (as MASE), per
// tensor or per channel; symmetric, or affine with a zero point.
//   symmetric: step = max|x| / (2^(w-1) - 1),  k in [-(2^(w-1)-1), 2^(w-1)-1]
//   affine:    step = (max - min) / (2^w - 1) with min <= 0 <= max,  x = (k - z) * step
// The scale may be learned instead (scale = "learned": Esser et al., "Learned step size
// quantization", 2020), or the end of the range (clip = "learned": Choi et al., "PACT", 2018), or
// given (step, zero_point, narrow), as other tools write it.
// MASE (rounding = "reference") divides by 2^(w-1), so that every row's positive maximum saturates
// one step low.
#include <algorithm>
#include <cmath>

#include "mase/base/fields.h"
#include "mase/formats/config.h"
#include "mase/formats/given.h"
#include "mase/formats/learned.h"
#include "mase/formats/reference_rules.h"
#include "mase/formats/rounding.h"
#include "mase/formats/scaled.h"

namespace mase::scale_integer_format {
namespace {

using Source = Scaled::Source;

// Steps (and zero points) that the config says, instead of the data.
void read_given(Scaled& type, const Value& config) {
  type.source = Source::given;
  type.steps = given_numbers(config["step"]);
  type.zeros = given_numbers(config["zero_point"]);
  type.affine = !type.zeros.empty();
  type.narrow = !config["narrow"].is_null() && config["narrow"].as_bool();
  if (type.steps.size() > 1 && type.zeros.size() > 1 && type.steps.size() != type.zeros.size())
    throw config_error(
        config, "zero_point",
        fmt::format("{} zero points for {} steps", type.zeros.size(), type.steps.size()),
        "give as many of both, or one for all");
  const ScaledSpec range = code_range(type);
  for (const double zero : type.zeros)
    if (zero < range.low || zero > range.high)
      throw config_error(config, "zero_point",
                         fmt::format("{} is no code of {} bits", zero, type.width),
                         fmt::format("give {} to {}", range.low, range.high));
}

Granularity parse_granularity(const Value& config, bool fixed) {
  using Kind = Granularity::Kind;
  if (config["granularity"].is_null()) return {fixed ? Kind::tensor : Kind::row};
  const std::string& name = config["granularity"].as_string();
  if (name == "channel") return {Kind::axis, config["axis"].as_int()};
  return {name == "row" ? Kind::row : Kind::tensor};
}

NumberType parse(const Value& config) {
  Scaled type;
  type.width = static_cast<int>(config["width"].as_int());
  type.is_signed = config["is_signed"].as_bool();
  type.affine = config["affine"].as_bool();
  const bool learned_scale = config["scale"].as_string() == "learned";
  const bool learned_clip = config["clip"].as_string() == "learned";
  const bool learned = learned_scale || learned_clip;
  if (learned) type.source = learned_scale ? Source::learned_scale : Source::learned_clip;
  // Symmetric codes do without the lowest number of two's complement; a learned step uses it.
  type.narrow = !(type.affine || learned_scale);
  if (type.width == 1 && type.is_signed && !type.affine)
    throw config_error(config, "width", "one signed bit has no symmetric range",
                       "give at least 2, or is_signed = false");
  if (learned_scale && learned_clip)
    throw config_error(config, "clip", "the scale is learned already",
                       "learn one of them: the range is the scale times the largest code");
  if (learned && type.width > learned_width_limit)
    throw config_error(config, "width",
                       fmt::format("a learned range of {} bits has nothing to learn", type.width),
                       fmt::format("give at most {}", learned_width_limit));
  if (learned && type.affine)
    throw config_error(config, "affine", "a learned range has no zero point",
                       "leave out affine, or the learned scale or clip");
  if (learned && config["rounding"].as_string() == reference_rounding)
    throw config_error(config, "rounding", "MASE has no learned range for this format",
                       "leave out rounding, or the learned scale or clip");
  if (!config["step"].is_null()) {
    if (learned || config["rounding"].as_string() == reference_rounding)
      throw config_error(config, "step", "the scale is found otherwise already",
                         "leave out step, or the other rule for the scale");
    read_given(type, config);
  }
  for (const char* key : {"zero_point", "narrow"})
    if (type.source != Source::given && !config[key].is_null())
      throw config_error(config, key, "it goes with a given step",
                         "give step too, or leave it out");
  const NumberType result{type, parse_granularity(config, learned || type.source == Source::given)};
  if (std::max(type.steps.size(), type.zeros.size()) > 1 &&
      result.granularity.kind == Granularity::Kind::tensor)
    throw config_error(config, "granularity", "a list of numbers for one tensor",
                       "say what each is for: granularity = \"row\" or \"channel\"");
  return result;
}

TypeOrReason type(const Value& config) {
  const NumberType parsed = parse(config);
  if (config["rounding"].as_string() == reference_rounding) return reference_reason;
  return parsed;
}

const Register<FormatRecord> registered{{
    .name = "scale_integer",
    .class_suffix = "ScaleInteger",
    .summary = "integers with a scale taken from the data, symmetric or affine",
    .help = "The scale covers the largest finite value of its group; infinities saturate. With "
            "scale = \"learned\" it is a parameter of the layer (weight_scale, data_in_scale), "
            "trained with the gradient of LSQ; with clip = \"learned\" the end of the range is "
            "(data_in_clip), with the gradient of PACT.",
    .schema =
        {{width_field(1, 32, "bits of a code"),
          boolean_field("is_signed", "signed codes; unsigned symmetric ones hold no negative value",
                        true),
          text_field("granularity",
                     "what shares a scale: each row of the last dimension, the tensor, or each "
                     "entry of `axis`; row if not given, with a learned scale or clip tensor",
                     {}, {"row", "tensor", "channel"}),
          integer_field("axis", "the dimension of granularity = \"channel\"", 0),
          boolean_field("affine", "use a zero point, so that the range need not be symmetric",
                        false),
          text_field("scale", "where the scale comes from: the data each time, or training (LSQ)",
                     "data", {"data", "learned"}),
          text_field("clip",
                     "where the range ends: at the largest value, or where training puts it "
                     "(PACT)",
                     "data", {"data", "learned"}),
          given_field(
              "step", "the scale itself, or a list of them: nothing is taken from the data",
              [](double step) { return std::isfinite(step) && step > 0; }, "a positive number"),
          given_field(
              "zero_point", "with step: the code of zero, or a list of them",
              [](double zero) { return zero == std::floor(zero); }, "a whole number"),
          boolean_field("narrow",
                        "with step: leave out the lowest code, so that the range is symmetric"),
          number_field("quantile", "accepted and without effect, as in MASE").without_effect(),
          rounding_field(true)}},
    .type = type,
    .make = [](const Value& config) { return reference_scaled(*parse(config).as<Scaled>()); },
    .precision = [](const Value& config) { return std::vector<int64_t>{config["width"].as_int()}; },
    .adapt = adapt_sign,
    .ladder = [](double) -> std::vector<Value> {
      std::vector<Value> configs;
      for (const int width : {2, 3, 4, 5, 6, 8}) configs.push_back(Dict{{"width", width}});
      return configs;
    },
}};

}  // namespace
}  // namespace mase::scale_integer_format
