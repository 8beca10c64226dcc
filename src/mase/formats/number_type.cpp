// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/number_type.h"

#include <algorithm>
#include <cmath>

#include "mase/base/error.h"
#include "mase/formats/blocking.h"
#include "mase/formats/fixed.h"
#include "mase/formats/floating.h"

namespace mase {
namespace {

template <class... Cases>
struct Match : Cases... {
  using Cases::operator()...;
};
template <class... Cases>
Match(Cases...) -> Match<Cases...>;

int element_width(const std::variant<Fixed, Float, Log>& element) {
  return std::visit(Match{[](const Float& type) { return type.width(); },
                          [](const auto& type) { return type.width; }},
                    element);
}

// `shared` bits for each of `groups`, spread over the values.
double with_shared(double bits, double shared, int64_t groups, const Shape& shape) {
  const int64_t values = element_count(shape);
  return values == 0 ? bits
                     : bits + shared * static_cast<double>(groups) / static_cast<double>(values);
}

// Groups of a tensor are of one size.
double fixed_bits(const Fixed& type) {
  if (type.widths.empty()) return type.width;
  double sum = 0;
  for (const int width : type.widths) sum += width;
  return sum / static_cast<double>(type.widths.size());
}

}  // namespace

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

bool is_elementwise(const NumberType& type) {
  return std::visit(
      Match{[](const Fixed& form) { return group_count(form) == 1; },
            [](const Float&) { return true; }, [](const Log&) { return true; },
            [](const Scaled& form) {
              return form.source == Scaled::Source::given && form.steps.size() == 1 &&
                     form.zeros.size() <= 1;
            },
            [](const Block&) { return false; }, [](const Binary& form) { return !form.scaled; },
            [](const Ternary& form) { return !form.scaled && form.threshold.has_value(); }},
      type.form);
}

double bits_per_value(const NumberType& type, const Shape& shape) {
  return std::visit(Match{[&](const Fixed& form) { return fixed_bits(form); },
                          [&](const Float& form) { return static_cast<double>(form.width()); },
                          [&](const Log& form) { return static_cast<double>(form.width); },
                          [&](const Scaled& form) {
                            const double shared = 32 + (form.affine ? form.width : 0);
                            return with_shared(form.width, shared,
                                               grouping(shape, type.granularity).groups, shape);
                          },
                          [&](const Block& form) {
                            return with_shared(element_width(form.element), form.scale_bits,
                                               block_form(form, shape).count(), shape);
                          },
                          [&](const Binary& form) {
                            return with_shared(1, form.scaled ? 32 : 0,
                                               first_dimension_groups(shape).groups, shape);
                          },
                          [&](const Ternary& form) {
                            return with_shared(2, form.scaled ? 32 : 0,
                                               first_dimension_groups(shape).groups, shape);
                          }},
                    type.form);
}

int code_width(const NumberType& type) {
  return std::visit(Match{[](const Float& form) { return form.width(); },
                          [](const Block& form) { return element_width(form.element); },
                          [](const Binary&) { return 1; }, [](const Ternary&) { return 2; },
                          [](const auto& form) { return form.width; }},
                    type.form);
}

std::optional<Limits> limits_of(const NumberType& type) {
  using Result = std::optional<Limits>;
  return std::visit(
      Match{[](const Fixed& form) -> Result {
              if (group_count(form) > 1) return {};
              const IntegerSpec spec = integer_spec(fixed_at(form, 0));
              return Limits{static_cast<double>(spec.low) * spec.inverse,
                            static_cast<double>(spec.high) * spec.inverse, spec.inverse};
            },
            [](const Float& form) -> Result { return float_limits(form); },
            [](const Log& form) -> Result { return float_limits(form); },
            [](const Scaled& form) -> Result {
              if (form.source != Scaled::Source::given || form.steps.size() != 1 ||
                  form.zeros.size() > 1)
                return {};
              const double high = std::ldexp(1.0, form.width - form.is_signed) - 1;
              const double low = !form.is_signed ? 0 : form.narrow ? -high : -high - 1;
              const double zero = form.zeros.empty() ? 0 : form.zeros[0], step = form.steps[0];
              return Limits{(low - zero) * step, (high - zero) * step, step};
            },
            [](const Block&) -> Result { return {}; },
            [](const Binary& form) -> Result {
              if (form.scaled) return {};
              return Limits{-1, 1, 1};
            },
            [](const Ternary& form) -> Result {
              if (form.scaled) return {};
              return Limits{-1, 1, 1};
            }},
      type.form);
}

std::string type_text(const NumberType& type) {
  const auto sign = [](bool is_signed) { return is_signed ? "signed" : "unsigned"; };
  return std::visit(
      Match{
          [&](const Fixed& form) {
            return fmt::format("{} fixed {}, {}, {}{}", sign(form.is_signed), numbers_text(form),
                               rounding_name(form.rounding), overflow_name(form.overflow),
                               form.narrow ? ", narrow" : "");
          },
          [&](const Float& form) {
            return fmt::format("float e{}m{}, bias {}, {}, {}", form.exponent, form.mantissa,
                               form.bias, rounding_name(form.rounding),
                               overflow_name(form.overflow));
          },
          [&](const Log& form) {
            return fmt::format("power of two {}, bias {}", form.width, form.bias);
          },
          [&](const Scaled& form) {
            static const char* const sources[] = {"data", "learned step", "learned clip", "given"};
            return fmt::format("{} scaled {}{}, step: {}", sign(form.is_signed), form.width,
                               form.affine ? " affine" : "",
                               sources[static_cast<size_t>(form.source)]);
          },
          [&](const Block& form) {
            const NumberType element{
                std::visit([](const auto& e) { return NumberType::Form(e); }, form.element)};
            return fmt::format("block of {}, shared exponent of {} bits", type_text(element),
                               form.scale_bits);
          },
          [&](const Binary& form) {
            return std::string(form.scaled ? "binary, scaled" : "binary");
          },
          [&](const Ternary& form) {
            return std::string(form.scaled ? "ternary, scaled" : "ternary");
          }},
      type.form);
}

}  // namespace mase
