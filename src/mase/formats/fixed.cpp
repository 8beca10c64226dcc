// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/fixed.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "mase/formats/kernels/codes.h"
#include "mase/formats/kernels/fixed_groups.h"
#include "mase/formats/rounder.h"

namespace mase {
namespace {

// The largest single-precision number that is not above the limit: words wider than 24 bits hold
// whole numbers that a float does not.
float float_below(double limit, int magnitude_bits) {
  // 2^53 and above: the subtraction of one is lost in double precision as well.
  if (magnitude_bits > 24) return std::nextafter(std::ldexp(1.0f, magnitude_bits), 0.0f);
  return static_cast<float>(limit);
}

CodeLayout code_layout_of(const Fixed& type) {
  return {.kind = type.sign_magnitude ? CodeLayout::Kind::sign_magnitude : CodeLayout::Kind::whole,
          .width = type.width,
          .is_signed = type.is_signed,
          .scale = std::ldexp(1.0f, type.frac)};
}

// Groups with a width and a point each.
void set_groups(Rounder& rounder, const Fixed& type) {
  auto specs = std::make_shared<FixedGroups>();
  double widths = 0;
  // All codes take the widest one's bits, and a bit more for a sign that only some have; those of
  // fewer bits are extended, so that one table of codes means the same everywhere.
  int widest = 0;
  for (int64_t g = 0; g < rounder.groups; ++g) {
    const Fixed own = fixed_at(type, g);
    specs->add(integer_spec(own));
    widths += own.width;
    widest = std::max(widest, own.width + (type.is_signed && !own.is_signed));
  }
  specs->finish();
  rounder.bits = widths / static_cast<double>(rounder.groups);
  rounder.sweep = [specs, granularity = rounder.granularity](const float* in, float* out,
                                                             const Shape& shape) {
    const Grouping groups = grouping(shape, granularity);
    if (groups.groups != specs->count()) return false;  // nothing to round, or a misfit
    fixed_groups_kernel(*specs, groups, in, out);
    return true;
  };
  rounder.round = [specs](const GroupRun& run, const float* in, float* out, size_t count) {
    integer_kernel(specs->at(run.group), in, out, count, 0);
  };
  rounder.one = [specs](const GroupRun& run, float x, uint32_t) {
    return integer_reference(specs->at(run.group), x, 0, 0);
  };
  rounder.group_limits = [specs](int64_t group) {
    const IntegerSpec& spec = specs->at(group);
    return Limits{spec.low * spec.inverse, spec.high * spec.inverse, spec.inverse};
  };
  if (widest < 1 || widest > 32) return;
  rounder.code_bits = widest;
  const auto layout_of = [type, widest](int64_t group) {
    CodeLayout layout = code_layout_of(fixed_at(type, group));
    layout.width = widest;
    layout.is_signed = type.is_signed;
    return layout;
  };
  std::vector<CodeLayout> layouts;
  for (int64_t g = 0; g < rounder.groups; ++g) layouts.push_back(layout_of(g));
  const auto all = std::make_shared<const std::vector<CodeLayout>>(std::move(layouts));
  rounder.to_codes = [specs, all](const GroupRun& run, const float* in, uint32_t* codes,
                                  size_t count) {
    std::vector<float> rounded(count);
    integer_kernel(specs->at(run.group), in, rounded.data(), count, 0);
    encode_kernel((*all)[static_cast<size_t>(run.group)], rounded.data(), codes, count);
  };
  rounder.to_values = [all](const GroupRun& run, const uint32_t* codes, float* out, size_t count) {
    decode_kernel((*all)[static_cast<size_t>(run.group)], codes, out, count);
  };
}

}  // namespace

std::string numbers_text(const Fixed& type) {
  if (group_count(type) == 1) return fmt::format("{}/{}", type.width, type.frac);
  const auto range = [](const std::vector<int>& numbers, int one) {
    if (numbers.empty()) return std::to_string(one);
    const auto [low, high] = std::minmax_element(numbers.begin(), numbers.end());
    return *low == *high ? std::to_string(*low) : fmt::format("{}..{}", *low, *high);
  };
  return fmt::format("{}/{} in {} groups", range(type.widths, type.width),
                     range(type.fracs, type.frac), group_count(type));
}

IntegerSpec integer_spec(const Fixed& type) {
  IntegerSpec spec;
  spec.scale = std::ldexp(1.0f, type.frac);
  spec.inverse = std::ldexp(1.0f, -type.frac);
  spec.low = static_cast<float>(lowest_code(type));
  spec.high = float_below(largest_code(type), type.width - type.is_signed);
  if (spec.low < -spec.high && (type.narrow || type.sign_magnitude)) spec.low = -spec.high;
  spec.rounding = type.rounding;
  if (type.overflow == Overflow::wrap) spec.wrap = std::ldexp(1.0f, type.width);
  return spec;
}

Rounder Fixed::rounder(const Granularity& granularity) const {
  Rounder rounder;
  rounder.granularity = granularity;
  rounder.groups = mase::group_count(*this);
  rounder.width = width;
  if (rounder.groups > 1) {
    set_groups(rounder, *this);
    return rounder;
  }
  const Fixed one = fixed_at(*this, 0);
  const IntegerSpec spec = integer_spec(one);
  rounder.bits = one.width;
  rounder.set_limits({static_cast<double>(spec.low) * spec.inverse,
                      static_cast<double>(spec.high) * spec.inverse, spec.inverse});
  rounder.stochastic = rounding == Rounding::stochastic;
  rounder.round = [spec, seed = seed](const GroupRun& run, const float* in, float* out,
                                      size_t count) {
    integer_kernel(spec, in, out, count, stochastic_key(seed, run.draw, run.first));
  };
  rounder.one = [spec, seed = seed](const GroupRun& run, float x, uint32_t element) {
    return integer_reference(spec, x, stochastic_key(seed, run.draw), element);
  };
  if (one.width >= 1 && one.width <= 32) set_codes(rounder, code_layout_of(one));
  return rounder;
}

std::string Fixed::text() const {
  return fmt::format("{} fixed {}, {}, {}{}", is_signed ? "signed" : "unsigned",
                     numbers_text(*this), rounding_name(rounding), overflow_name(overflow),
                     narrow ? ", narrow" : "");
}

}  // namespace mase
