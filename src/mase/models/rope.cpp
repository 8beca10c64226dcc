// SPDX-License-Identifier: Apache-2.0
#include "mase/models/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>

#include "mase/base/text.h"

namespace mase {
namespace {

// The table of a config and what it must have.
struct RopeTable {
  const Value& value;
  const std::string& place;

  std::optional<double> find(const char* key) const {
    const Value& found = value.is_dict() ? value[key] : Value();
    if (found.is_null()) return {};
    if (!found.is_number() || !std::isfinite(found.as_double()))
      throw Error(place, fmt::format("config.json: rope '{}' is no number", key));
    return found.as_double();
  }
  double positive(const char* key) const {
    const std::optional<double> found = find(key);
    if (!found || !(*found > 0))
      throw Error(place, fmt::format("config.json: rope '{}' is no positive number", key));
    return *found;
  }
  double positive_or(const char* key, double otherwise) const {
    return find(key) ? positive(key) : otherwise;
  }
};

// In single precision where Hugging Face's code has it.
std::vector<float> powers(double base, int64_t width) {
  std::vector<float> result;
  for (int64_t i = 0; i < width / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(width);
    result.push_back(1.0f / static_cast<float>(std::pow(base, static_cast<double>(exponent))));
  }
  return result;
}

void scale_as_llama3(std::vector<float>& frequencies, const RopeTable& table) {
  const double factor = table.positive("factor"), low = table.positive("low_freq_factor"),
               high = table.positive("high_freq_factor"),
               length = table.positive("original_max_position_embeddings");
  if (!(high > low))
    throw Error(table.place, "config.json: rope 'high_freq_factor' is not above the low one");
  for (float& frequency : frequencies) {
    const double wave = 2 * std::numbers::pi / static_cast<double>(frequency);
    if (wave < length / high) continue;
    const double own = static_cast<double>(frequency);
    if (wave > length / low) {
      frequency = static_cast<float>(own / factor);
      continue;
    }
    const double smooth = (length / wave - low) / (high - low);
    frequency = static_cast<float>((1 - smooth) * own / factor + smooth * own);
  }
}

// Peng et al., 2023
void scale_as_yarn(Rope& rope, const RopeTable& table, double base, int64_t width, double longest) {
  const double length = table.positive_or("original_max_position_embeddings", longest);
  const double factor =
      table.find("factor") ? table.positive("factor") : std::max(1.0, longest / length);
  const auto part = [](double by, double times) {
    return by <= 1 ? 1.0 : 0.1 * times * std::log(by) + 1.0;
  };
  if (const auto given = table.find("attention_factor"))
    rope.scale = *given;
  else if (const auto all = table.find("mscale_all_dim"), one = table.find("mscale");
           all && one && *all != 0 && *one != 0)
    rope.scale = part(factor, *one) / part(factor, *all);
  else
    rope.scale = part(factor, 1);
  const auto size = static_cast<double>(width);
  const auto place_of = [&](double turns) {
    return size * std::log(length / (turns * 2 * std::numbers::pi)) / (2 * std::log(base));
  };
  double low = place_of(table.positive_or("beta_fast", 32)),
         high = place_of(table.positive_or("beta_slow", 1));
  const Value& cut = table.value["truncate"];
  if (!cut.is_bool() || cut.as_bool()) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, size - 1);
  if (low == high) high += 0.001;
  for (size_t i = 0; i < rope.frequencies.size(); ++i) {
    const double ramp = std::clamp((static_cast<double>(i) - low) / (high - low), 0.0, 1.0);
    const double own = static_cast<double>(rope.frequencies[i]);
    rope.frequencies[i] = static_cast<float>(own / factor * ramp + own * (1 - ramp));
  }
}

// Ding et al., 2024: a factor for each pair, others for long texts.
void scale_as_longrope(Rope& rope, const RopeTable& table, double longest, int64_t tokens) {
  const double length = table.positive("original_max_position_embeddings");
  const double factor = table.find("factor") ? table.positive("factor") : longest / length;
  if (const auto given = table.find("attention_factor"))
    rope.scale = *given;
  else if (factor > 1)
    rope.scale = std::sqrt(1 + std::log(factor) / std::log(length));
  rope.length = static_cast<int64_t>(length);
  const char* key = static_cast<double>(tokens) > length ? "long_factor" : "short_factor";
  const Value& factors = table.value[key];
  if (!factors.is_list() || factors.as_list().size() != rope.frequencies.size())
    throw Error(table.place, fmt::format("config.json: rope '{}' is no list of {} numbers", key,
                                         rope.frequencies.size()));
  for (size_t i = 0; i < rope.frequencies.size(); ++i) {
    const Value& one = factors.as_list()[i];
    if (!one.is_number() || !(one.as_double() > 0))
      throw Error(table.place,
                  fmt::format("config.json: rope '{}' has a factor that is no positive "
                              "number",
                              key));
    rope.frequencies[i] /= static_cast<float>(one.as_double());
  }
}

}  // namespace

Rope rope_of(const Value& config, int64_t width, int64_t tokens, const std::string& place) {
  const Value& newer = config["rope_parameters"];
  const Value& scaling = newer.is_dict() ? newer : config["rope_scaling"];
  if (!scaling.is_null() && !scaling.is_dict())
    throw Error(place, "config.json: 'rope_scaling' is no table");
  const RopeTable table{scaling, place}, top{config, place};
  const double base = table.find("rope_theta") ? table.positive("rope_theta")
                                               : top.positive_or("rope_theta", 10000);
  if (!(base > 1)) throw Error(place, "config.json: 'rope_theta' is not above 1");
  for (const RopeTable& one : {table, top})
    if (one.find("partial_rotary_factor").value_or(1) != 1)
      throw Error(place, "config.json: 'partial_rotary_factor' is not known",
                  "heads that turn as a whole are read");
  if (width < 2 || width % 2 != 0)
    throw Error(place, fmt::format("config.json: heads of {} cannot be turned", width));
  std::string kind = "default";
  if (scaling.is_dict())
    for (const char* key : {"type", "rope_type"})
      if (scaling[key].is_string()) kind = scaling[key].as_string();
  const double longest = top.positive_or("max_position_embeddings", 2048);
  Rope rope{powers(base, width)};
  if (kind == "default") return rope;
  if (kind == "linear") {
    const double factor = table.positive("factor");
    for (float& frequency : rope.frequencies) frequency /= static_cast<float>(factor);
  } else if (kind == "dynamic") {
    const double factor = table.positive("factor");
    rope.length = static_cast<int64_t>(longest);
    const double now = std::max(longest, static_cast<double>(tokens));
    if (width > 2)
      rope.frequencies =
          powers(base * std::pow(factor * now / longest - (factor - 1),
                                 static_cast<double>(width) / static_cast<double>(width - 2)),
                 width);
  } else if (kind == "longrope") {
    scale_as_longrope(rope, table, longest, tokens);
  } else if (kind == "llama3") {
    scale_as_llama3(rope.frequencies, table);
  } else if (kind == "yarn") {
    scale_as_yarn(rope, table, base, width, longest);
  } else {
    throw Error(place, fmt::format("config.json: rope of type '{}' is not known", printable(kind)),
                "known: default, linear, dynamic, llama3, longrope, yarn");
  }
  for (const float frequency : rope.frequencies)
    if (!std::isfinite(frequency))
      throw Error(place, "config.json: the numbers of 'rope_scaling' give no frequencies");
  return rope;
}

}  // namespace mase
