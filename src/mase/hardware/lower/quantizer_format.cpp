// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/lower/quantizer_format.h"

#include <algorithm>

#include "mase/formats/groups.h"
#include "mase/formats/number_type.h"
#include "mase/formats/rounding.h"

namespace mase {
namespace {

std::optional<IntegerRounding> integer_rounding(Rounding rounding) {
  switch (rounding) {
    case Rounding::nearest_even:
      return IntegerRounding::nearest_even;
    case Rounding::half_up:
      return IntegerRounding::half_up;
    case Rounding::half_away:
      return IntegerRounding::half_away;
    case Rounding::toward_zero:
      return IntegerRounding::toward_zero;
    case Rounding::floor:
      return IntegerRounding::floor;
    case Rounding::half_toward_zero:
      return IntegerRounding::half_toward_zero;
    case Rounding::away_from_zero:
      return IntegerRounding::away_from_zero;
    case Rounding::ceil:
      return IntegerRounding::ceil;
    case Rounding::stochastic:
      break;
  }
  return {};
}

std::optional<FixedFormat> fixed_format(const Fixed& type) {
  const std::optional<IntegerRounding> rounding = integer_rounding(type.rounding);
  if (!rounding || type.width > 32 || type.overflow == Overflow::infinity) return {};
  if (type.overflow == Overflow::wrap && (type.narrow || type.sign_magnitude)) return {};
  return FixedFormat{
      type.is_signed,
      type.width,
      type.frac,
      *rounding,
      type.overflow == Overflow::wrap ? IntegerOverflow::wrap : IntegerOverflow::saturate,
      type.narrow || type.sign_magnitude};
}

}  // namespace

std::optional<std::vector<FixedFormat>> fixed_formats(const Quantizer& quantizer, size_t features) {
  if (!quantizer.type || quantizer.learned) return {};
  const std::optional<Fixed> type = as_fixed(*quantizer.type, true);
  if (!type) return {};
  std::vector<FixedFormat> formats(features);
  if (group_count(*type) <= 1) {
    const std::optional<FixedFormat> format = fixed_format(fixed_at(*type, 0));
    if (!format) return {};
    std::fill(formats.begin(), formats.end(), *format);
    return formats;
  }
  const Grouping groups =
      grouping({1, static_cast<int64_t>(features)}, quantizer.type->granularity);
  if (groups.groups > group_count(*type)) return {};
  for (int64_t group = 0; group < groups.groups; ++group) {
    const std::optional<FixedFormat> format = fixed_format(fixed_at(*type, group));
    if (!format) return {};
    groups.for_each(group, [&](int64_t i) { formats[static_cast<size_t>(i)] = *format; });
  }
  return formats;
}

bool is_function_of_value(const Quantizer& quantizer) {
  return quantizer.elementwise && !quantizer.stochastic && !quantizer.learned;
}

bool never_falls(const Quantizer& quantizer) {
  if (!quantizer.type) return false;
  const Fixed* const fixed = quantizer.type->as<Fixed>();
  if (fixed)
    return fixed->overflow == Overflow::saturate && fixed->rounding != Rounding::stochastic;
  return quantizer.type->as<Scaled>() || quantizer.type->as<Float>() || quantizer.type->as<Log>() ||
         quantizer.type->as<Binary>() || quantizer.type->as<Ternary>();
}

}  // namespace mase
