// SPDX-License-Identifier: Apache-2.0
// Fixed point: width bits, frac_width of them after the point.
//   q(x) = clamp(round(x * 2^frac_width), lowest, largest) / 2^frac_width
// Infinities saturate, NaN stays NaN. Codes are two's complement (plain binary when unsigned).
// overflow = "wrap" drops the high bits instead of clamping, as hardware without a comparison does.
//
// Width and point may differ inside a tensor: a list of them, one per row (granularity = "row": one
// per entry of `axis`) or one per value ("element"). A width of 0 in a list is the constant 0.
#include <algorithm>
#include <cmath>
#include <optional>

#include "mase/base/fields.h"
#include "mase/formats/config.h"
#include "mase/formats/fixed.h"

namespace mase::integer_format {
namespace {

constexpr int64_t widest = 64, farthest_point = 126;

// Whole numbers in a list, lists inside it flattened.
bool flatten(const Value& value, std::vector<int>& numbers, int64_t least, int64_t most) {
  if (value.is_int()) {
    if (value.as_int() < least || value.as_int() > most) return false;
    numbers.push_back(static_cast<int>(value.as_int()));
    return true;
  }
  if (!value.is_list()) return false;
  for (const Value& entry : value.as_list())
    if (!flatten(entry, numbers, least, most)) return false;
  return true;
}

// An integer from `least` up, or a list with one per group, from `least_listed` up.
Field numbers_field(const char* name, bool required, int64_t least, int64_t least_listed,
                    int64_t most, const char* help) {
  return any_field(name, help)
      .needed(required)
      .between(static_cast<double>(least), static_cast<double>(most))
      .checked([least_listed, most](const Value& value) -> std::optional<std::string> {
        std::vector<int> numbers;
        if (!value.is_int() && !value.is_list())
          return fmt::format("expected an integer or a list of integers, got {}",
                             value.type_name());
        if (!flatten(value, numbers, least_listed, most))
          return fmt::format("the list must hold integers from {} to {}", least_listed, most);
        if (numbers.empty()) return "the list is empty";
        return {};
      });
}

Granularity parse_granularity(const Value& config) {
  using Kind = Granularity::Kind;
  const std::string& name = config["granularity"].as_string();
  const bool batch = config["skip_first_dim"].as_bool();
  if (name == "row") return {Kind::axis, int_or(config, "axis", batch ? -1 : 0)};
  if (name == "element") return {Kind::element, 0, batch};
  return {};
}

// Truths in a list, lists inside it flattened.
bool flatten_signs(const Value& value, std::vector<int>& signs) {
  if (value.is_bool()) signs.push_back(value.as_bool());
  if (!value.is_list()) return value.is_bool();
  for (const Value& entry : value.as_list())
    if (!flatten_signs(entry, signs)) return false;
  return true;
}

Field signs_field() {
  return any_field("is_signed", "two's complement, or numbers from zero up; or a list", true)
      .checked([](const Value& value) -> std::optional<std::string> {
        std::vector<int> signs;
        if (flatten_signs(value, signs) && !signs.empty()) return {};
        return fmt::format("expected true, false or a list of them, got {}", value.type_name());
      });
}

// Fills in widths, points and signs, and what is known of all of them.
void read_numbers(Fixed& type, const Value& config) {
  std::vector<int> widths, fracs, signs;
  flatten(config["width"], widths, 0, widest);
  flatten_signs(config["is_signed"], signs);
  if (config["frac_width"].is_null())
    for (const int width : widths) fracs.push_back(width / 2);
  else
    flatten(config["frac_width"], fracs, -farthest_point, farthest_point);
  const size_t groups = std::max({widths.size(), fracs.size(), signs.size()});
  for (const std::vector<int>* list : {&widths, &fracs, &signs})
    if (list->size() > 1 && list->size() != groups)
      throw config_error(config, "width",
                         fmt::format("lists of {} widths, {} fraction widths and {} signs",
                                     widths.size(), fracs.size(), signs.size()),
                         "give as many of each, or one for all");
  type.width = *std::max_element(widths.begin(), widths.end());
  type.frac = *std::max_element(fracs.begin(), fracs.end());
  type.is_signed = *std::max_element(signs.begin(), signs.end());
  if (groups == 1) return;
  if (config["granularity"].as_string() == "tensor")
    throw config_error(config, "granularity", "a list of numbers for one tensor",
                       "say what each is for: granularity = \"row\" or \"element\"");
  widths.resize(groups, widths.front());
  fracs.resize(groups, fracs.front());
  if (signs.size() > 1) type.signs = std::move(signs);
  type.widths = std::move(widths);
  type.fracs = std::move(fracs);
}

NumberType parse(const Value& config, Rounding rounding) {
  Fixed type;
  type.rounding = rounding;
  type.seed = static_cast<uint64_t>(int_or(config, "seed", 0));
  type.narrow = config["narrow"].as_bool();
  if (config["overflow"].as_string() == "wrap") type.overflow = Overflow::wrap;
  read_numbers(type, config);
  for (int64_t g = 0; g < group_count(type); ++g) {
    const Fixed one = fixed_at(type, g);
    const int magnitude_bits = one.width - one.is_signed;
    if (magnitude_bits - one.frac > 127)
      throw config_error(config, "frac_width",
                         fmt::format("numbers of width {} and frac_width {} exceed single "
                                     "precision",
                                     one.width, one.frac),
                         fmt::format("give at least {}", magnitude_bits - 127));
  }
  if (type.overflow == Overflow::wrap && type.width > widest_wrap)
    throw config_error(
        config, "overflow",
        fmt::format("single precision does not hold all remainders of {} bits", type.width),
        fmt::format("give a width of at most {}, or saturate", widest_wrap));
  if (type.overflow == Overflow::wrap && type.narrow)
    throw config_error(config, "narrow", "a range that wraps has all codes",
                       "leave out narrow, or overflow = \"wrap\"");
  if (group_count(type) > 1 && type.rounding == Rounding::stochastic)
    throw config_error(config, "rounding", "numbers per group are not rounded at random",
                       "choose another rounding, or granularity = \"tensor\"");
  return {type, parse_granularity(config)};
}

Schema schema(bool with_rounding) {
  Schema schema{{
      numbers_field("width", true, 1, 0, widest,
                    "bits of a number, or a list of them, in which 0 is the constant 0"),
      numbers_field("frac_width", false, -farthest_point, -farthest_point, farthest_point,
                    "bits after the point, or a list of them; half the width if not given; may be "
                    "negative or above width"),
      signs_field(),
  }};
  if (with_rounding) {
    schema.fields.push_back(rounding_field(false));
    schema.fields.push_back(boolean_field("floor", "the same as rounding = \"floor\"", false));
    schema.fields.push_back(seed_field());
  }
  schema.fields.push_back(
      text_field("overflow",
                 "numbers beyond the range become the last one, or come in again "
                 "at the other end",
                 "saturate", {"saturate", "wrap"}));
  schema.fields.push_back(boolean_field(
      "narrow", "leave out the lowest number, so that the range is symmetric", false));
  schema.fields.push_back(
      text_field("granularity",
                 "what the numbers of a list are for: each entry of `axis` (row), "
                 "or each value (element)",
                 "tensor", {"tensor", "row", "element"}));
  schema.fields.push_back(
      integer_field("axis",
                    "the dimension of granularity = \"row\"; negative counts from "
                    "the end; if not given the last one (features), or the first "
                    "where there is no batch (a layer's parameters)"));
  schema.fields.push_back(boolean_field(
      "skip_first_dim", "dimension 0 is a batch, whose entries share their numbers", true));
  schema.fields.push_back(ste_field());
  return schema;
}

std::vector<int64_t> precision_of(const NumberType& type) {
  return {type.as<Fixed>()->width, type.as<Fixed>()->frac};
}

Rounding rounding_of(const Value& config) {
  return config["floor"].as_bool() ? Rounding::floor
                                   : rounding_from_name(config["rounding"].as_string());
}

void adapt(Dict& config, const OperandUse& use) {
  adapt_sign(config, use);
  adapt_batch(config, use);
  // Rows of an activation are its features.
  const Value* granularity = config.find("granularity");
  if (use.activation && use.features && granularity && *granularity == Value("row"))
    set_default(config, "axis", *use.features);
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
    .type = [](const Value& config) -> TypeOrReason { return parse(config, rounding_of(config)); },
    .precision =
        [](const Value& config) { return precision_of(parse(config, rounding_of(config))); },
    .adapt = adapt,
    .ladder = ladder,
}};

const Register<FormatRecord> integer_floor{{
    .name = "integer_floor",
    .class_suffix = "IntegerFloor",
    .summary = "fixed point rounded down",
    .help = "integer with rounding = \"floor\", under the name MASE gives it",
    .schema = schema(false),
    .type = [](const Value& config) -> TypeOrReason { return parse(config, Rounding::floor); },
    .precision = [](const Value& config) { return precision_of(parse(config, Rounding::floor)); },
    .adapt = adapt,
    .ladder = ladder,
}};

}  // namespace
}  // namespace mase::integer_format
