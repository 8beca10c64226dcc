// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/given.h"

#include <algorithm>
#include <optional>

#include "mase/base/fields.h"
#include "mase/formats/config.h"

namespace mase {

std::vector<double> given_numbers(const Value& value) {
  if (value.is_null()) return {};
  if (value.is_number()) return {value.as_double()};
  std::vector<double> numbers;
  for (const Value& entry : value.as_list())
    for (const double number : given_numbers(entry)) numbers.push_back(number);
  return numbers;
}

Field given_field(const char* name, const char* help, std::function<bool(double)> good,
                  const char* wanted) {
  return any_field(name, help)
      .checked([good, wanted](const Value& value) -> std::optional<std::string> {
        const auto fine = [&](const auto& self, const Value& entry) -> bool {
          if (entry.is_number()) return good(entry.as_double());
          if (!entry.is_list() || entry.as_list().empty()) return false;
          return std::all_of(entry.as_list().begin(), entry.as_list().end(),
                             [&](const Value& inner) { return self(self, inner); });
        };
        if (fine(fine, value)) return {};
        return fmt::format("expected {}, or a list of them", wanted);
      });
}

std::vector<Field> given_granularity_fields() {
  return {
      text_field("granularity",
                 "what a number is for: the tensor, or of a list each for an entry of `axis` or "
                 "for `block_size` values of the last dimension",
                 "tensor", {"tensor", "channel", "block"}),
      integer_field("axis", "the dimension of granularity = \"channel\"", 0),
      integer_field("block_size", "how many values granularity = \"block\" takes together", 0)
          .from(0)};
}

int64_t given_block(const Value& config) {
  return config["granularity"].as_string() == "block" ? config["block_size"].as_int() : 0;
}

Granularity given_granularity(const Value& config, const std::vector<std::string>& keys) {
  size_t most = 1;
  for (const std::string& key : keys) most = std::max(most, given_numbers(config[key]).size());
  for (const std::string& key : keys) {
    const size_t count = given_numbers(config[key]).size();
    if (count > 1 && count != most)
      throw config_error(config, key, fmt::format("{} numbers beside a list of {}", count, most),
                         "give as many of each, or one for all");
  }
  if (config["granularity"].as_string() == "channel")
    return {Granularity::Kind::axis, config["axis"].as_int()};
  if (config["granularity"].as_string() == "block") {
    if (given_block(config) < 1)
      throw config_error(config, "block_size", "blocks of no values", "give the size of a block");
    return {.kind = Granularity::Kind::block, .size = given_block(config)};
  }
  if (most > 1)
    throw config_error(config, "granularity", "a list of numbers for one tensor",
                       "say what each is for: granularity = \"channel\"");
  return {};
}

Field group_size_field() {
  return integer_field(
             "group_size",
             "consecutive values of a row that share a scale; the last group may be shorter", 64)
      .between(1, 1e9);
}

Field scale_format_field() {
  return table_field("scale_format",
                     "a number format of the scales themselves: {name = \"minifloat_ieee\", "
                     "width = 8, exponent_width = 4}; float32 if not given");
}

QuantizerPtr scale_format(const Value& config) {
  const Value& table = config["scale_format"];
  if (table.is_null()) return {};
  if (!table["name"].is_string())
    throw config_error(config, "scale_format", "names no number format",
                       "write {name = \"minifloat_ieee\", ...}");
  Value keys = Dict{};
  for (const auto& [key, value] : table.as_dict())
    if (key != "name") keys.dict().set(key, value);
  QuantizerPtr scale = make_quantizer(table["name"].as_string(), keys, "scale_format");
  if (!scale->elementwise || scale->learned || scale->stochastic)
    throw config_error(config, "scale_format", "scales are rounded one by one",
                       "take a format without scales of its own, and without learning or chance");
  return scale;
}

Rounder with_scale_format(Rounder rounder, const Value& config) {
  const QuantizerPtr format = scale_format(config);
  if (!format) return rounder;
  rounder.shared_bits += format->bits_per_value({1}) - 32;
  rounder.sweep = {};
  const auto rounded = [format](const Rounder::Fit& fit) -> Rounder::Fit {
    if (!fit) return {};
    return [format, fit](const float* in, std::span<const Run> runs) {
      Shared shared = fit(in, runs);
      const auto scale = static_cast<float>(shared[0]);
      float result = 0;
      format->quantize(&scale, &result, {1});
      // No scale of something becomes that of nothing.
      const bool lost = scale > 0 && result <= 0 && format->smallest_positive;
      shared[0] = lost ? *format->smallest_positive : result;
      return shared;
    };
  };
  rounder.fit = rounded(rounder.fit);
  rounder.plain_fit = rounded(rounder.plain_fit);
  return rounder;
}

}  // namespace mase
