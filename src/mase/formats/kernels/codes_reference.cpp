// SPDX-License-Identifier: Apache-2.0
// Codes one by one: what the vector kernels are tested against, and what they leave to plain loops.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "mase/formats/kernels/codes.h"

namespace mase {
namespace {

uint32_t whole_code(const CodeLayout& layout, float value) {
  if (std::isnan(value)) return 0;
  const auto number = static_cast<int64_t>(static_cast<double>(value) * layout.scale);
  return static_cast<uint32_t>(number) & static_cast<uint32_t>((uint64_t{1} << layout.width) - 1);
}

float whole_value(const CodeLayout& layout, uint32_t code) {
  int64_t number = code & ((uint64_t{1} << layout.width) - 1);
  if (layout.is_signed && (code >> (layout.width - 1) & 1)) number -= int64_t{1} << layout.width;
  return static_cast<float>(static_cast<double>(number) / layout.scale);
}

uint32_t floating_code(const CodeLayout& layout, float value) {
  const int m = layout.mantissa;
  const uint32_t sign = std::signbit(value) ? 1u << (layout.width - 1) : 0;
  const uint32_t all_ones = (1u << (layout.width - 1)) - 1, fraction_ones = (1u << m) - 1;
  if (std::isnan(value)) {
    if (layout.specials == Specials::none) return 0;
    if (layout.specials == Specials::nan) return sign | all_ones;
    const uint32_t payload = (std::bit_cast<uint32_t>(value) & 0x7FFFFF) >> (23 - m);
    return sign | (all_ones & ~fraction_ones) | (payload ? payload : 1u << (m - 1));
  }
  if (std::isinf(value)) return sign | (all_ones & ~fraction_ones);
  const double a = std::fabs(static_cast<double>(value));
  if (a == 0) return sign;
  const int emin = 1 - layout.bias;
  const int exponent = std::max(std::ilogb(a), emin);
  // The hidden bit adds one to the exponent field.
  const auto significand = static_cast<uint32_t>(std::ldexp(a, m - exponent));
  return sign | ((static_cast<uint32_t>(exponent - emin) << m) + significand);
}

float floating_value(const CodeLayout& layout, uint32_t code) {
  const int m = layout.mantissa;
  const bool negative = code >> (layout.width - 1) & 1;
  const uint32_t fraction = code & ((1u << m) - 1);
  const uint32_t exponent_ones = (1u << (layout.width - 1 - m)) - 1;
  const uint32_t field = code >> m & exponent_ones;
  const bool top = field == exponent_ones;
  if (layout.specials == Specials::ieee && top)
    return std::bit_cast<float>(0x7F800000u | fraction << (23 - m) | (negative ? 1u << 31 : 0));
  if (layout.specials == Specials::nan && top && fraction == (1u << m) - 1)
    return std::copysign(std::numeric_limits<float>::quiet_NaN(), negative ? -1.0f : 1.0f);
  const double significand = fraction + (field ? std::ldexp(1.0, m) : 0.0);
  const int exponent = std::max(static_cast<int>(field), 1) - layout.bias;
  const double value = std::ldexp(significand, exponent - m);
  return static_cast<float>(negative ? -value : value);
}

uint32_t explicit_one_code(const CodeLayout& layout, float value) {
  if (std::isnan(value)) return 0;
  const uint32_t sign = std::signbit(value) ? 1u << (layout.width - 1) : 0;
  const double a = std::fabs(static_cast<double>(value));
  if (a == 0) return sign;
  const int exponent = std::max(std::ilogb(a) + 1, -layout.bias);
  const auto k = static_cast<uint32_t>(std::ldexp(a, layout.mantissa - exponent));
  return sign | static_cast<uint32_t>(exponent + layout.bias) << layout.mantissa | k;
}

float explicit_one_value(const CodeLayout& layout, uint32_t code) {
  const int m = layout.mantissa;
  const uint32_t k = code & ((1u << m) - 1);
  const auto field = static_cast<int>(code >> m & ((1u << (layout.width - 1 - m)) - 1));
  const auto value =
      static_cast<float>(std::ldexp(static_cast<double>(k), field - layout.bias - m));
  return code >> (layout.width - 1) & 1 ? -value : value;
}

uint32_t power_code(const CodeLayout& layout, float value) {
  const uint32_t sign = 1u << (layout.width - 1);
  if (value == 0 || std::isnan(value)) return sign;
  return (value < 0 ? sign : 0) | static_cast<uint32_t>(std::ilogb(value) + layout.bias);
}

float power_value(const CodeLayout& layout, uint32_t code) {
  const uint32_t sign = 1u << (layout.width - 1);
  if ((code & (2 * sign - 1)) == sign) return 0;
  const float value = std::ldexp(1.0f, static_cast<int>(code & (sign - 1)) - layout.bias);
  return code & sign ? -value : value;
}

}  // namespace

uint32_t code_of(const CodeLayout& layout, float value) {
  switch (layout.kind) {
    case CodeLayout::Kind::whole:
      return whole_code(layout, value);
    case CodeLayout::Kind::sign_magnitude:
      if (std::isnan(value)) return 0;
      return (std::signbit(value) ? 1u << (layout.width - 1) : 0) |
             static_cast<uint32_t>(std::fabs(value));
    case CodeLayout::Kind::floating:
      return floating_code(layout, value);
    case CodeLayout::Kind::explicit_one:
      return explicit_one_code(layout, value);
    case CodeLayout::Kind::power:
      return power_code(layout, value);
  }
  return 0;
}

float value_of(const CodeLayout& layout, uint32_t code) {
  switch (layout.kind) {
    case CodeLayout::Kind::whole:
      return whole_value(layout, code);
    case CodeLayout::Kind::sign_magnitude: {
      const uint32_t sign = 1u << (layout.width - 1);
      const auto magnitude = static_cast<float>(code & (sign - 1));
      return code & sign ? -magnitude : magnitude;
    }
    case CodeLayout::Kind::floating:
      return floating_value(layout, code);
    case CodeLayout::Kind::explicit_one:
      return explicit_one_value(layout, code);
    case CodeLayout::Kind::power:
      return power_value(layout, code);
  }
  return 0;
}

}  // namespace mase
