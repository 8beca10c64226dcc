// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/rounding.h"
#include "mase/base/fields.h"

#include <algorithm>
#include <utility>

namespace mase {
namespace {

const std::pair<const char*, Rounding> names[] = {
    {"nearest_even", Rounding::nearest_even},
    {"half_up", Rounding::half_up},
    {"half_away", Rounding::half_away},
    {"half_toward_zero", Rounding::half_toward_zero},
    {"toward_zero", Rounding::toward_zero},
    {"away_from_zero", Rounding::away_from_zero},
    {"floor", Rounding::floor},
    {"ceil", Rounding::ceil},
    {"stochastic", Rounding::stochastic},
};

uint64_t mix(uint64_t h) {
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9u;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBu;
  return h ^ (h >> 31);
}

}  // namespace

std::vector<std::string> rounding_names() {
  std::vector<std::string> result;
  for (const auto& [name, rounding] : names) result.emplace_back(name);
  return result;
}

const char* rounding_name(Rounding rounding) {
  for (const auto& [name, known] : names)
    if (rounding == known) return name;
  return "";
}

Rounding rounding_from_name(const std::string& name) {
  for (const auto& [known, rounding] : names)
    if (name == known) return rounding;
  MASE_CHECK(false, "unknown rounding '{}'", name);
  return Rounding::nearest_even;
}

uint32_t stochastic_key(uint64_t seed, uint64_t draw, uint32_t first) {
  const auto key = static_cast<uint32_t>(mix(mix(seed + 0x9E3779B97F4A7C15u) ^ draw) >> 32);
  return key + first * 0x9E3779B1u;  // see stochastic_word
}

Field rounding_field(bool with_reference) {
  Field field = text_field(
      "rounding", "how a value between two representable ones is rounded", "nearest_even",
      with_reference ? std::vector<std::string>{"nearest_even"} : rounding_names());
  if (with_reference) {
    field.help = "nearest_even, or reference for the published behaviour of MASE, bit for bit";
    field.choices.emplace_back(reference_rounding);
  }
  return field;
}

Field seed_field() {
  return integer_field("seed", "of the draws of stochastic rounding", 0).from(0);
}

Field ste_field() {
  return text_field("ste",
                    "gradient: straight passes it unchanged, clipped zeroes it where saturated",
                    "straight", {"straight", "clipped"});
}

}  // namespace mase
