// SPDX-License-Identifier: Apache-2.0
#include "mase/formats/fixed.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "mase/formats/elementwise.h"
#include "mase/formats/kernels/fixed_groups.h"

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

Quantizer uniform(const Fixed& type) {
  const IntegerSpec spec = integer_spec(type);
  ElementwiseFormat format;
  format.kernel = [spec, seed = type.seed](const float* in, float* out, size_t count,
                                           uint64_t draw) {
    integer_kernel(spec, in, out, count, stochastic_key(seed, draw));
  };
  format.reference = [spec, seed = type.seed](float x, uint64_t draw, uint32_t element) {
    return integer_reference(spec, x, stochastic_key(seed, draw), element);
  };
  format.stochastic = type.rounding == Rounding::stochastic;
  if (type.width >= 1 && type.width <= 32) format.coding = coding_of(code_layout_of(type));
  return make_elementwise(std::move(format));
}

// Values whose group has its own width and point.
struct Groups {
  Fixed type;
  Granularity granularity;
  FixedGroups specs;
  int bits = 0;  // of a code

  // All codes take the widest one's bits, and a bit more for a sign that only some have; those of
  // fewer bits are extended, so that one table of codes means the same everywhere.
  int code_bits() const {
    int bits = 0;
    for (int64_t g = 0; g < group_count(type); ++g) {
      const Fixed one = fixed_at(type, g);
      bits = std::max(bits, one.width + (type.is_signed && !one.is_signed));
    }
    return bits;
  }
  CodeLayout code_layout(int64_t group) const {
    CodeLayout layout = code_layout_of(fixed_at(type, group));
    layout.width = bits;
    layout.is_signed = type.is_signed;
    return layout;
  }

  Grouping of(const Shape& shape) const {
    const Grouping groups = grouping(shape, granularity);
    MASE_CHECK(groups.groups == specs.count() || element_count(shape) == 0,
               "{} groups of numbers for shape {}", specs.count(), shape_text(shape));
    return groups;
  }
};

void add_codes(Quantizer& q, const std::shared_ptr<const Groups>& own) {
  q.code_bits = own->bits;
  q.encode = [own](const float* in, const Shape& shape) {
    Quantizer::Codes codes;
    codes.codes.resize(static_cast<size_t>(element_count(shape)));
    std::vector<float> rounded(codes.codes.size());
    const Grouping groups = own->of(shape);
    fixed_groups_kernel(own->specs, groups, in, rounded.data());
    groups.for_each_run([&](int64_t g, int64_t at, size_t count) {
      const CodeLayout layout = own->code_layout(g);
      encode_kernel(layout, rounded.data() + at, codes.codes.data() + at, count);
    });
    return codes;
  };
  q.decode = [own](const Quantizer::Codes& codes, float* out, const Shape& shape) {
    MASE_CHECK(codes.codes.size() == static_cast<size_t>(element_count(shape)),
               "{} codes for shape {}", codes.codes.size(), shape_text(shape));
    own->of(shape).for_each_run([&](int64_t g, int64_t at, size_t count) {
      const CodeLayout layout = own->code_layout(g);
      decode_kernel(layout, codes.codes.data() + at, out + at, count);
    });
  };
}

Quantizer grouped(const Fixed& type, const Granularity& granularity, bool clipped) {
  auto own = std::make_shared<Groups>(Groups{type, granularity, {}, 0});
  for (int64_t g = 0; g < group_count(type); ++g) own->specs.add(integer_spec(fixed_at(type, g)));
  own->specs.finish();
  own->bits = own->code_bits();
  Quantizer q;
  q.quantize = [own](const float* in, float* out, const Shape& shape) {
    fixed_groups_kernel(own->specs, own->of(shape), in, out);
  };
  q.quantize_group = [own](const float* in, float* out, int64_t count, int64_t group) {
    integer_kernel(own->specs.at(group), in, out, static_cast<size_t>(count), 0);
  };
  q.reference = [own](const float* in, float* out, const Shape& shape) {
    own->of(shape).for_each_run([&](int64_t g, int64_t at, size_t count) {
      for (size_t i = 0; i < count; ++i)
        out[static_cast<size_t>(at) + i] =
            integer_reference(own->specs.at(g), in[static_cast<size_t>(at) + i], 0, 0);
    });
  };
  if (clipped)
    q.gradient = [own](const float* in, const float* grad_out, float* grad_in, const Shape& shape) {
      own->of(shape).for_each_run([&](int64_t g, int64_t at, size_t count) {
        const IntegerSpec& spec = own->specs.at(g);
        clipped_gradient_kernel(spec.low * spec.inverse, spec.high * spec.inverse, in + at,
                                grad_out + at, grad_in + at, count);
      });
    };
  if (own->bits >= 1 && own->bits <= 32) add_codes(q, own);
  return q;
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

Quantizer fixed_quantizer(const Fixed& type, const Granularity& granularity, bool clipped) {
  return group_count(type) == 1 ? uniform(fixed_at(type, 0)) : grouped(type, granularity, clipped);
}

}  // namespace mase
