// SPDX-License-Identifier: Apache-2.0
// Fixed point: width bits, frac_width of them after the point.
//   q(x) = clamp(round(x * 2^frac_width), lowest, largest) / 2^frac_width
// Infinities saturate, NaN stays NaN. Codes are two's complement (plain binary when unsigned).
#include <algorithm>
#include <cmath>

#include "mase/formats/elementwise.h"
#include "mase/formats/kernels/elementwise.h"

namespace mase::integer_format {
namespace {

// The largest single-precision number that is not above the limit: words wider than 24 bits hold
// whole numbers that a float does not.
float float_below(double limit) {
  const float nearest = static_cast<float>(limit);
  return static_cast<double>(nearest) > limit ? std::nextafter(nearest, 0.0f) : nearest;
}

Quantizer make_integer(const Value& config, Rounding rounding) {
  const int width = static_cast<int>(config["width"].as_int("width"));
  const int frac = static_cast<int>(int_or(config, "frac_width", width / 2));
  const bool is_signed = config["is_signed"].as_bool();
  const int magnitude_bits = is_signed ? width - 1 : width;
  if (magnitude_bits - frac > 127)
    throw config_error(
        config, "frac_width",
        fmt::format("numbers of width {} and frac_width {} exceed single precision", width, frac),
        fmt::format("give at least {}", magnitude_bits - 127));
  IntegerSpec spec;
  spec.scale = std::ldexp(1.0f, frac);
  spec.inverse = std::ldexp(1.0f, -frac);
  spec.low = is_signed ? -std::ldexp(1.0f, width - 1) : 0.0f;
  spec.high = width == 64 && !is_signed ? float_below(0x1.fffffep63)
                                        : float_below(std::ldexp(1.0, magnitude_bits) - 1);
  // 2^53 and above: the subtraction of one is lost in double precision as well.
  if (magnitude_bits > 24) spec.high = std::nextafter(std::ldexp(1.0f, magnitude_bits), 0.0f);
  spec.rounding = rounding;

  ElementwiseFormat format;
  const uint64_t seed = static_cast<uint64_t>(int_or(config, "seed", 0));
  format.kernel = [spec, seed](const float* in, float* out, size_t count, uint64_t draw) {
    integer_kernel(spec, in, out, count, stochastic_key(seed, draw));
  };
  format.reference = [spec, seed](float x, uint64_t draw, uint32_t element) {
    return integer_reference(spec, x, stochastic_key(seed, draw), element);
  };
  format.stochastic = rounding == Rounding::stochastic;
  format.bits = width;
  if (width <= 32)
    format.coding = coding_of({.width = width, .is_signed = is_signed, .scale = spec.scale});
  format.lowest = static_cast<double>(spec.low) * spec.inverse;
  format.largest = static_cast<double>(spec.high) * spec.inverse;
  format.smallest_positive = spec.inverse;
  Quantizer quantizer = make_elementwise(std::move(format), config);
  quantizer.precision = {width, frac};
  return quantizer;
}

Schema schema(bool with_rounding) {
  Schema schema{{
      width_field(1, 64, "bits of a number"),
      {.name = "frac_width",
       .type = FieldType::integer,
       .help = "bits after the point; half the width if not given; may be negative or above width",
       .minimum = -126,
       .maximum = 126},
      {.name = "is_signed",
       .type = FieldType::boolean,
       .default_value = true,
       .help = "two's complement, or numbers from zero up"},
  }};
  if (with_rounding) {
    schema.fields.push_back(rounding_field(false));
    schema.fields.push_back({.name = "floor",
                             .type = FieldType::boolean,
                             .default_value = false,
                             .help = "the same as rounding = \"floor\""});
    schema.fields.push_back(seed_field());
  }
  schema.fields.push_back(ste_field());
  return schema;
}

// As many fraction bits as the largest value leaves.
std::vector<Value> ladder(double largest) {
  const int whole = static_cast<int>(std::ceil(std::log2(std::max(largest, 0x1p-40))));
  std::vector<Value> configs;
  for (const int width : {2, 3, 4, 5, 6, 8, 10, 12, 16})
    configs.push_back(Dict{{"width", width}, {"frac_width", width - 1 - whole}});
  return configs;
}

const Register<FormatRecord> integer{{
    .name = "integer",
    .aliases = {"fixed"},
    .class_suffix = "Integer",
    .summary = "fixed point: width bits, frac_width of them after the point",
    .help = "q(x) = clamp(round(x * 2^frac_width), lowest, largest) / 2^frac_width",
    .schema = schema(true),
    .make =
        [](const Value& config) {
          const bool floor = config["floor"].as_bool();
          return make_integer(
              config, floor ? Rounding::floor : rounding_from_name(config["rounding"].as_string()));
        },
    .ladder = ladder,
}};

const Register<FormatRecord> integer_floor{{
    .name = "integer_floor",
    .class_suffix = "IntegerFloor",
    .summary = "fixed point rounded down",
    .help = "integer with rounding = \"floor\", under the name MASE gives it",
    .schema = schema(false),
    .make = [](const Value& config) { return make_integer(config, Rounding::floor); },
    .ladder = ladder,
}};

}  // namespace
}  // namespace mase::integer_format
