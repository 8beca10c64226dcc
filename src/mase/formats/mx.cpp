// SPDX-License-Identifier: Apache-2.0
// OCP Microscaling formats (OCP MX 1.0): blocks along one axis share a power-of-two scale of
// scale_bits bits, S = floor(log2(max)) - emax of the element format. mxint elements are whole
// numbers of `width` bits with width-2 after the point, symmetric; mxfp elements are small floats.
// Elements beyond the range saturate. A partial last block is as if filled with zeros.
#include "mase/base/fields.h"
#include "mase/formats/blocks.h"
#include "mase/formats/floating.h"
#include "mase/formats/format.h"

namespace mase::mx_format {
namespace {

Block shared_part(const Value& config) {
  Block type;
  type.size = {config["block_size"].as_int()};
  type.axis = config["axis"].as_int();
  type.scale_bits = static_cast<int>(config["scale_bits"].as_int());
  type.most = (1 << (type.scale_bits - 1)) - 1;
  type.least = -type.most;
  return type;
}

Rounding rounding_of(const Value& config) {
  return rounding_from_name(config["rounding"].as_string());
}

Block mxint_block(const Value& config) {
  const int width = static_cast<int>(config["width"].as_int());
  Block type = shared_part(config);
  type.element =
      Fixed{.width = width, .frac = width - 2, .rounding = rounding_of(config), .narrow = true};
  return type;
}

Block mxfp_block(const Value& config) {
  Float element;
  element.exponent = static_cast<int>(config["exponent_width"].as_int());
  element.mantissa = static_cast<int>(config["frac_width"].as_int());
  element.bias = default_bias(element.exponent);
  element.rounding = rounding_of(config);
  // OCP's own element formats: E5M2 and wider keep infinities and NaN, E4M3 one NaN, the 6 and
  // 4-bit ones neither.
  element.specials = element.exponent >= 5  ? Specials::ieee
                     : element.width() == 8 ? Specials::nan
                                            : Specials::none;
  Block type = shared_part(config);
  type.element = element;
  return type;
}

// Blocks run along what is summed up.
void adapt(Dict& config, const OperandUse& use) {
  if (use.summed) set_default(config, "axis", *use.summed);
}

std::vector<Field> shared_fields() {
  return {
      integer_field("block_size", "values that share a scale", 32).between(1, 1 << 30),
      integer_field("axis", "the dimension along which blocks run; negative counts from the end",
                    -1),
      integer_field("scale_bits", "bits of the shared scale", 8).between(2, 8),
      text_field("rounding", "how an element between two representable ones is rounded",
                 "nearest_even", {"nearest_even", "half_away", "toward_zero"}),
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
    .type = [](const Value& config) -> TypeOrReason { return NumberType{mxint_block(config)}; },
    .precision = [](const Value& config) -> std::vector<int64_t> {
      return {config["width"].as_int(), config["scale_bits"].as_int()};
    },
    .adapt = adapt,
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
    .schema = schema(
        {exponent_width_field(1, 5),
         integer_field("frac_width", "bits of an element's fraction").needed().between(0, 10)}),
    .type = [](const Value& config) -> TypeOrReason { return NumberType{mxfp_block(config)}; },
    .precision = [](const Value& config) -> std::vector<int64_t> {
      const Block type = mxfp_block(config);
      const Float& element = std::get<Float>(type.element);
      return {element.width(), element.exponent, type.scale_bits};
    },
    .adapt = adapt,
    .ladder = [](double) -> std::vector<Value> {
      std::vector<Value> configs;
      for (const auto& [exponent, fraction] : {std::pair{2, 1}, {2, 3}, {3, 2}, {4, 3}, {5, 2}})
        configs.push_back(Dict{{"exponent_width", exponent}, {"frac_width", fraction}});
      return configs;
    },
}};

}  // namespace
}  // namespace mase::mx_format
