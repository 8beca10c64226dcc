// SPDX-License-Identifier: Apache-2.0
// Binary floating point with any exponent and mantissa width, subnormals included, and the named
// members of the family: OCP's 8, 6 and 4-bit formats (OCP 8-bit Floating Point Specification 1.0,
// OCP Microscaling Formats 1.0), half, bfloat16 and tf32.
#include "mase/base/fields.h"
#include "mase/formats/floating.h"
#include "mase/formats/format.h"

namespace mase::float_formats {
namespace {

TypeOrReason with_rule(Float type, const Value& config) {
  type.rounding = rounding_from_name(config["rounding"].as_string());
  if (config["overflow"].as_string() == "infinity") type.overflow = Overflow::infinity;
  if (type.overflow == Overflow::infinity && type.specials != Specials::ieee)
    throw config_error(config, "overflow", "this format has no infinity",
                       "use overflow = \"saturate\"");
  return NumberType{type};
}

std::vector<Field> rule_fields() {
  return {
      text_field("rounding", "how a value between two representable ones is rounded",
                 "nearest_even", {"nearest_even", "half_away", "toward_zero"}),
      text_field("overflow",
                 "finite numbers beyond the range become the largest finite one, or infinite",
                 "saturate", {"saturate", "infinity"}),
      ste_field(),
  };
}

Schema general_schema() {
  Schema schema{{
      exponent_width_field(1, 8),
      integer_field("mantissa_width", "bits of the fraction, the hidden bit not counted")
          .needed()
          .between(0, 23),
      exponent_bias_field(),
      text_field("specials",
                 "ieee: infinities and NaN in the top exponent; nan: NaN in the last code only; "
                 "none: all codes are numbers",
                 "ieee", {"ieee", "nan", "none"}),
  }};
  for (Field& field : rule_fields()) schema.fields.push_back(std::move(field));
  return schema;
}

Float parse(const Value& config) {
  Float type;
  type.exponent = static_cast<int>(config["exponent_width"].as_int());
  type.mantissa = static_cast<int>(config["mantissa_width"].as_int());
  type.bias = static_cast<int>(int_or(config, "exponent_bias", default_bias(type.exponent)));
  const std::string& specials = config["specials"].as_string();
  type.specials = specials == "ieee"  ? Specials::ieee
                  : specials == "nan" ? Specials::nan
                                      : Specials::none;
  if (type.specials == Specials::ieee && (type.mantissa == 0 || type.exponent == 1))
    throw config_error(config, "specials",
                       "infinities and NaN leave no room for numbers in this layout",
                       "use specials = \"none\"");
  return type;
}

std::vector<int64_t> precision_of(const Float& type) { return {type.width(), type.exponent}; }

const Register<FormatRecord> general{{
    .name = "float",
    .class_suffix = "Float",
    .summary = "floating point of any exponent and mantissa width, with subnormals",
    .help = "Finite numbers beyond the range saturate; infinities stay where the format has them "
            "and saturate elsewhere; NaN stays NaN.",
    .schema = general_schema(),
    .type = [](const Value& config) { return with_rule(parse(config), config); },
    .precision = [](const Value& config) { return precision_of(parse(config)); },
    .ladder = [](double) -> std::vector<Value> {
      std::vector<Value> configs;
      for (const auto& [exponent, mantissa] : {std::pair{3, 1}, {4, 2}, {4, 3}, {5, 4}, {5, 6}})
        configs.push_back(
            Dict{{"exponent_width", exponent}, {"mantissa_width", mantissa}, {"specials", "none"}});
      return configs;
    },
}};

struct Named {
  const char* name;
  std::vector<std::string> aliases;
  const char* suffix;
  int exponent, mantissa;
  Specials specials;
  const char* summary;
};

struct RegisterNamed {
  RegisterNamed() {
    const Named all[] = {
        {"e4m3",
         {"e4m3fn", "fp8_e4m3"},
         "E4M3",
         4,
         3,
         Specials::nan,
         "OCP's 8-bit E4M3: largest 448, one NaN, no infinity (e4m3fn elsewhere)"},
        {"e4m3_finite",
         {},
         "E4M3Finite",
         4,
         3,
         Specials::none,
         "E4M3 with numbers in all codes: largest 480, neither NaN nor infinity"},
        {"e5m2",
         {"fp8_e5m2"},
         "E5M2",
         5,
         2,
         Specials::ieee,
         "OCP's 8-bit E5M2: largest 57344, infinities and NaN"},
        {"e3m2", {"fp6_e3m2"}, "E3M2", 3, 2, Specials::none, "OCP's 6-bit E3M2: largest 28"},
        {"e2m3", {"fp6_e2m3"}, "E2M3", 2, 3, Specials::none, "OCP's 6-bit E2M3: largest 7.5"},
        {"e2m1", {"fp4_e2m1"}, "E2M1", 2, 1, Specials::none, "OCP's 4-bit E2M1: largest 6"},
        {"half", {"float16", "fp16"}, "Half", 5, 10, Specials::ieee, "IEEE 754 half precision"},
        {"bfloat16",
         {"bf16"},
         "BFloat16",
         8,
         7,
         Specials::ieee,
         "the upper half of single precision"},
        {"tf32", {}, "TF32", 8, 10, Specials::ieee, "19-bit TensorFloat"},
    };
    for (const Named& named : all) {
      const Float type{named.exponent, named.mantissa, default_bias(named.exponent),
                       named.specials};
      Registry<FormatRecord>::instance().add({
          .name = named.name,
          .aliases = named.aliases,
          .class_suffix = named.suffix,
          .summary = named.summary,
          .schema = Schema{rule_fields()},
          .type = [type](const Value& config) { return with_rule(type, config); },
          .precision = [type](const Value&) { return precision_of(type); },
      });
    }
  }
};
const RegisterNamed named;

}  // namespace
}  // namespace mase::float_formats
