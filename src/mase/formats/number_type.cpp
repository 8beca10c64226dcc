// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/number_type.h"

#include <algorithm>
#include <cmath>

#include "mase/formats/rounder.h"

namespace mase {

const char* overflow_name(Overflow overflow) {
  switch (overflow) {
    case Overflow::saturate:
      return "saturate";
    case Overflow::wrap:
      return "wrap";
    case Overflow::infinity:
      return "infinity";
  }
  return "";
}

int64_t group_count(const Fixed& type) {
  return static_cast<int64_t>(
      std::max({type.widths.size(), type.fracs.size(), type.signs.size(), size_t{1}}));
}

Fixed fixed_at(const Fixed& type, int64_t group) {
  Fixed one = type;
  const auto g = static_cast<size_t>(group);
  if (!type.widths.empty()) one.width = type.widths.at(g);
  if (!type.fracs.empty()) one.frac = type.fracs.at(g);
  if (!type.signs.empty()) one.is_signed = type.signs.at(g) != 0;
  one.widths.clear();
  one.fracs.clear();
  one.signs.clear();
  return one;
}

double largest_code(const Fixed& type) {
  return type.width == 0 ? 0 : std::ldexp(1.0, type.width - type.is_signed) - 1;
}

double lowest_code(const Fixed& type) {
  if (!type.is_signed || type.width == 0) return 0;
  const bool narrow = type.narrow || type.sign_magnitude;
  return narrow ? -largest_code(type) : -std::ldexp(1.0, type.width - 1);
}

Rounder NumberType::rounder() const {
  Rounder rounder = std::visit([this](const auto& own) { return own.rounder(granularity); }, form);
  rounder.elementwise = rounder.is_elementwise();
  return rounder;
}

std::optional<Fixed> as_fixed(const NumberType& type, bool same_rule) {
  if (const Fixed* fixed = type.as<Fixed>()) return *fixed;
  const Scaled* scaled = type.as<Scaled>();
  if (!scaled || scaled->source != Scaled::Source::given || !scaled->clamped) return {};
  const bool exact = scaled->arithmetic == Scaled::Arithmetic::exact;
  if (same_rule && scaled->arithmetic == Scaled::Arithmetic::truncate) return {};
  if (!scaled->is_signed && scaled->narrow && !exact) return {};  // no largest code
  for (const double zero : scaled->zeros)
    if (zero != 0) return {};
  Fixed fixed{.is_signed = scaled->is_signed, .width = scaled->width};
  fixed.narrow = scaled->narrow && scaled->is_signed;
  if (!exact) fixed.rounding = scaled->rounding;
  std::vector<int> fracs;
  for (const double step : scaled->steps) {
    int exponent = 0;
    if (std::frexp(step, &exponent) != 0.5 || std::abs(exponent) > 100) return {};
    fracs.push_back(1 - exponent);
  }
  if (fracs.empty()) return {};
  fixed.frac = *std::max_element(fracs.begin(), fracs.end());
  if (fracs.size() > 1) {
    fixed.widths.assign(fracs.size(), fixed.width);
    fixed.fracs = std::move(fracs);
  }
  return fixed;
}

bool is_elementwise(const NumberType& type) { return type.rounder().elementwise; }

double bits_per_value(const NumberType& type, const Shape& shape) {
  return type.rounder().bits_per_value(shape);
}

int code_width(const NumberType& type) { return type.rounder().width; }

std::optional<Limits> limits_of(const NumberType& type) {
  const Rounder rounder = type.rounder();
  if (!rounder.lowest || !rounder.largest || !rounder.smallest_positive) return {};
  return Limits{*rounder.lowest, *rounder.largest, *rounder.smallest_positive};
}

std::string type_text(const NumberType& type) {
  return std::visit([](const auto& form) { return form.text(); }, type.form);
}

}  // namespace mase
