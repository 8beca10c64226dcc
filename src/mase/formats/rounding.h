// SPDX-License-Identifier: Apache-2.0
// The ways a real number becomes a whole one, and the draws of stochastic rounding. Draws come from
// a counter (seed, draw, element), so they do not depend on threads or on the order of elements.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "mase/base/schema.h"

namespace mase {

// The nearest whole number, ties decided by the name; or the next one on a given side.
enum class Rounding {
  nearest_even,
  half_up,  // floor(x + 1/2): hardware's cheapest, one constant added before the bits are cut
  half_away,
  half_toward_zero,
  toward_zero,
  away_from_zero,
  floor,
  ceil,
  stochastic,
};

inline constexpr const char* reference_rounding = "reference";

std::vector<std::string> rounding_names();  // "nearest_even", "half_up", ...
const char* rounding_name(Rounding rounding);
Rounding rounding_from_name(const std::string& name);

// A word in [0, 2^32) for one element; `key` comes from stochastic_key.
inline uint32_t stochastic_word(uint32_t key, uint32_t element) {
  uint32_t h = element * 0x9E3779B1u + key;
  h = (h ^ (h >> 16)) * 0x85EBCA6Bu;
  h = (h ^ (h >> 13)) * 0xC2B2AE35u;
  return h ^ (h >> 16);
}
// The same as a number in [0, 1) with 24 bits.
inline float stochastic_uniform(uint32_t key, uint32_t element) {
  return static_cast<float>(stochastic_word(key, element) >> 8) * 0x1p-24f;
}
// `first`: the number of the value that is called element 0.
uint32_t stochastic_key(uint64_t seed, uint64_t draw, uint32_t first = 0);

// `uniform` is used by stochastic rounding only. Infinities and NaN stay.
template <class Real>
Real round_to_whole(Real x, Rounding rounding, Real uniform = 0) {
  switch (rounding) {
    case Rounding::nearest_even:
      return std::nearbyint(x);
    case Rounding::half_up: {
      const Real below = std::floor(x);
      return x - below >= Real(0.5) ? below + 1 : below;
    }
    case Rounding::half_away:
      return std::round(x);
    case Rounding::half_toward_zero: {
      const Real whole = std::trunc(x);
      return std::fabs(x - whole) > Real(0.5) ? whole + std::copysign(Real(1), x) : whole;
    }
    case Rounding::toward_zero:
      return std::trunc(x);
    case Rounding::away_from_zero:
      return x < 0 ? std::floor(x) : std::ceil(x);
    case Rounding::floor:
      return std::floor(x);
    case Rounding::ceil:
      return std::ceil(x);
    case Rounding::stochastic: {
      const Real below = std::floor(x);
      return uniform < x - below ? below + 1 : below;
    }
  }
  return x;
}

// Fields that formats share.
Field rounding_field(bool with_reference);
Field seed_field();
Field ste_field();

}  // namespace mase
