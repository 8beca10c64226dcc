// SPDX-License-Identifier: Apache-2.0
// OCP Microscaling formats (OCP MX 1.0): blocks along one axis share a power-of-two scale of
// scale_bits bits, S = floor(log2(max)) - emax of the element format. mxint elements are whole
// numbers of `width` bits with width-2 after the point, symmetric; mxfp elements are small floats.
// Elements beyond the range saturate. A partial last block is as if filled with zeros.
#include <cmath>

#include "mase/formats/blocks.h"
#include "mase/formats/float_layout.h"

namespace mase::mx_format {
namespace {

struct Shared {
  BlockingOf blocking;
  int bits, largest;  // of the scale's exponent
  Rounding rounding;
};

Shared shared_part(const Value& config) {
  Shared shared;
  const int64_t size = config["block_size"].as_int(), axis = config["axis"].as_int();
  shared.blocking = [size, axis](const Shape& shape) { return axis_blocking(shape, size, axis); };
  shared.bits = static_cast<int>(config["scale_bits"].as_int());
  shared.largest = (1 << (shared.bits - 1)) - 1;
  shared.rounding = rounding_from_name(config["rounding"].as_string());
  return shared;
}

Quantizer make_mxint(const Value& config) {
  const Shared shared = shared_part(config);
  const int width = static_cast<int>(config["width"].as_int());
  BlockFormat format;
  format.spec.whole = true;
  format.spec.element.mantissa = 0;
  format.spec.element.largest = std::ldexp(1.0f, width - 1) - 1;
  format.spec.element.rounding = shared.rounding;
  format.spec.offset = width - 2;
  format.spec.least = -shared.largest - (width - 2);
  format.spec.most = shared.largest - (width - 2);
  format.blocking = shared.blocking;
  format.shared_bits = shared.bits;
  format.coding = coding_of({.width = width});
  Quantizer quantizer = make_block(std::move(format), config);
  quantizer.precision = {width, shared.bits};
  return quantizer;
}

Quantizer make_mxfp(const Value& config) {
  const Shared shared = shared_part(config);
  FloatLayout layout;
  layout.exponent_width = static_cast<int>(config["exponent_width"].as_int());
  layout.mantissa_width = static_cast<int>(config["frac_width"].as_int());
  layout.bias = default_bias(layout.exponent_width);
  // OCP's own element formats: E5M2 and wider keep infinities and NaN, E4M3 one NaN, the 6 and
  // 4-bit ones neither.
  const int e = layout.exponent_width;
  layout.specials = e >= 5 ? Specials::ieee : layout.width() == 8 ? Specials::nan : Specials::none;
  BlockFormat format;
  format.spec.whole = false;
  format.spec.element = float_spec(layout);
  format.spec.element.has_infinity = false;  // elements saturate
  format.spec.element.rounding = shared.rounding;
  format.spec.offset = std::ilogb(format.spec.element.largest);
  format.spec.least = -shared.largest;
  format.spec.most = shared.largest;
  format.blocking = shared.blocking;
  format.shared_bits = shared.bits;
  format.coding = coding_of(float_codes(layout));
  Quantizer quantizer = make_block(std::move(format), config);
  quantizer.precision = {layout.width(), layout.exponent_width, shared.bits};
  return quantizer;
}

std::vector<Field> shared_fields() {
  return {
      {.name = "block_size",
       .type = FieldType::integer,
       .default_value = 32,
       .help = "values that share a scale",
       .minimum = 1,
       .maximum = 1 << 30},
      {.name = "axis",
       .type = FieldType::integer,
       .default_value = -1,
       .help = "the dimension along which blocks run; negative counts from the end"},
      {.name = "scale_bits",
       .type = FieldType::integer,
       .default_value = 8,
       .help = "bits of the shared scale",
       .minimum = 2,
       .maximum = 8},
      {.name = "rounding",
       .type = FieldType::text,
       .default_value = "nearest_even",
       .help = "how an element between two representable ones is rounded",
       .choices = {"nearest_even", "half_away", "toward_zero"}},
  };
}

Schema schema(std::vector<Field> own) {
  for (Field& field : shared_fields()) own.push_back(std::move(field));
  return {std::move(own)};
}

const Register<FormatRecord> mxint{{
    .name = "mxint",
    .class_suffix = "MXInt",
    .summary = "OCP microscaling integers: whole numbers with a shared power-of-two scale",
    .schema = schema({width_field(2, 16, "bits of an element")}),
    .make = make_mxint,
    .ladder = [](double) -> std::vector<Value> {
      std::vector<Value> configs;
      for (const int width : {2, 3, 4, 6, 8}) configs.push_back(Dict{{"width", width}});
      return configs;
    },
}};

const Register<FormatRecord> mxfp{{
    .name = "mxfp",
    .class_suffix = "MXFP",
    .summary = "OCP microscaling floats: small floats with a shared power-of-two scale",
    .schema = schema({exponent_width_field(1, 5),
                      {.name = "frac_width",
                       .type = FieldType::integer,
                       .help = "bits of an element's fraction",
                       .required = true,
                       .minimum = 0,
                       .maximum = 10}}),
    .make = make_mxfp,
    .ladder = [](double) -> std::vector<Value> {
      std::vector<Value> configs;
      for (const auto& [exponent, fraction] : {std::pair{2, 1}, {2, 3}, {3, 2}, {4, 3}, {5, 2}})
        configs.push_back(Dict{{"exponent_width", exponent}, {"frac_width", fraction}});
      return configs;
    },
}};

}  // namespace
}  // namespace mase::mx_format
