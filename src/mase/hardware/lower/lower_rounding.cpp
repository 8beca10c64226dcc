// SPDX-License-Identifier: Apache-2.0
#include "mase/hardware/lower/lower_rounding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <optional>

#include "mase/formats/blocks.h"
#include "mase/formats/floating.h"
#include "mase/hardware/lower/lower_linear.h"
#include "mase/hardware/lower/quantizer_format.h"

namespace mase {
namespace {

constexpr int64_t table_limit = 1 << 14;
constexpr size_t step_limit = 64;             // values of a format that is lowered to thresholds
constexpr int64_t all_codes_limit = 1 << 18;  // operands whose steps are held to every code

std::optional<IntegerRounding> magnitude_rounding(Rounding rounding) {
  switch (rounding) {
    case Rounding::nearest_even:
      return IntegerRounding::nearest_even;
    case Rounding::half_away:
      return IntegerRounding::half_up;
    case Rounding::toward_zero:
      return IntegerRounding::floor;
    default:
      return {};
  }
}

int bits_of(int64_t magnitude) {
  return static_cast<int>(std::bit_width(static_cast<uint64_t>(magnitude)));
}

// Rounds magnitudes. Everything is in units of the operand's binary point f: a step of 2^q is a
// drop of q + f bits.
class MagnitudeRounding {
 public:
  MagnitudeRounding(IntegerBuilder& builder, std::string place)
      : builder_(builder), place_(std::move(place)) {}

  IntegerId magnitude(IntegerId x) {
    return builder_.at(x).range.low >= 0 ? x : builder_.node("magnitude", {x}, {});
  }

  IntegerId with_sign(IntegerId magnitude, IntegerId like) {
    const IntegerRange range = builder_.at(like).range;
    if (range.low >= 0) return magnitude;
    if (range.high <= 0) return builder_.negate(magnitude);
    return builder_.select(negative(like), builder_.negate(magnitude), magnitude);
  }

  // A small float: as many significant bits as it has, from the leading one down.
  IntegerId to_float(IntegerId x, const FloatSpec& spec, IntegerRounding rounding) {
    // The largest number, which saturation gives, must be whole too.
    const IntegerId fine = builder_.aligned(
        x, std::max(builder_.at(x).frac, spec.mantissa - std::ilogb(spec.largest)));
    const int frac = builder_.at(fine).frac;
    const IntegerId a = magnitude(fine);
    const int precision = spec.mantissa + 1, top = bits_of(builder_.at(a).range.high);
    const int first = std::max(0, spec.emin - spec.mantissa + frac);
    IntegerId value = sliced(a, first, first, first + precision, rounding);
    for (int drop = first + 1; drop + precision <= top; ++drop)
      value = builder_.select(reaches(a, int64_t{1} << (drop - 1 + precision)),
                              sliced(a, drop, first, drop + precision, rounding), value);
    return with_sign(limited(value, spec), x);
  }

  // Elements whose shared power of two follows from the largest magnitude of them all.
  std::vector<IntegerId> to_block(std::vector<IntegerId> features, const BlockSpec& spec,
                                  IntegerRounding rounding) {
    int frac = builder_.at(features[0]).frac;
    for (const IntegerId x : features) frac = std::max(frac, builder_.at(x).frac);
    frac = std::max(frac, (spec.whole ? 0 : spec.element.mantissa - spec.offset) - spec.most);
    std::vector<IntegerId> magnitudes;
    for (IntegerId& x : features) {
      x = builder_.aligned(x, frac);
      magnitudes.push_back(magnitude(x));
    }
    const IntegerId largest = maximum(magnitudes);
    const int top = bits_of(builder_.at(largest).range.high);
    const int finest = spec.whole ? 0 : spec.element.emin - spec.element.mantissa;
    const int first = std::max(0, finest + spec.least + frac);
    // S by S, from that of the smallest magnitude up: the limit, and whether S is at least that.
    const int lowest = std::clamp(-frac - spec.offset, spec.least, spec.most);
    const int highest = std::clamp(top - frac - spec.offset, spec.least, spec.most);
    const auto limit_of = [&](int s) {
      const double limit = std::ldexp(static_cast<double>(spec.element.largest), s + frac - first);
      return builder_.constant(static_cast<int64_t>(std::floor(std::min(limit, 0x1p60))),
                               frac - first);
    };
    std::map<int, IntegerId> at_least;
    IntegerId limit = limit_of(lowest);
    for (int s = lowest + 1; s <= highest; ++s) {
      at_least[s] = reaches(largest, first_with_exponent(s + spec.offset + frac, spec.carry_bits));
      limit = builder_.select(at_least[s], limit_of(s), limit);
    }
    std::vector<IntegerId> results;
    for (size_t i = 0; i < features.size(); ++i) {
      const IntegerId value =
          spec.whole ? whole_element(magnitudes[i], spec, rounding, at_least, lowest, frac, first)
                     : float_element(magnitudes[i], spec, rounding, at_least, frac, first);
      const IntegerId over = builder_.compare(limit, value);
      results.push_back(with_sign(builder_.select(over, limit, value), features[i]));
    }
    return results;
  }

 private:
  IntegerId negative(IntegerId x) {
    return builder_.compare(x, builder_.constant(0, builder_.at(x).frac));
  }
  IntegerId reaches(IntegerId x, int64_t threshold) {
    return builder_.compare(builder_.constant(threshold - 1, builder_.at(x).frac), x);
  }
  IntegerId either(IntegerId a, IntegerId b) {
    return builder_.select(a, builder_.constant(1, 0), b);
  }

  IntegerId maximum(std::vector<IntegerId> values) {
    while (values.size() > 1) {
      std::vector<IntegerId> next;
      for (size_t i = 0; i + 1 < values.size(); i += 2)
        next.push_back(
            builder_.select(builder_.compare(values[i], values[i + 1]), values[i + 1], values[i]));
      if (values.size() % 2 == 1) next.push_back(values.back());
      values = std::move(next);
    }
    return values[0];
  }

  // The least magnitude whose exponent is `bit` after rounding to so many bits after its leading
  // one; -1: without rounding.
  static int64_t first_with_exponent(int bit, int carry_bits) {
    if (bit < 0) return 0;
    const int half = bit - 2 - carry_bits;
    return (int64_t{1} << bit) - (carry_bits >= 0 && half >= 0 ? int64_t{1} << half : 0);
  }

  // a rounded to multiples of 2^drop, in units of 2^first; only bits below `width` matter.
  IntegerId sliced(IntegerId a, int drop, int first, int width, IntegerRounding rounding) {
    if (drop > 61) return builder_.constant(0, builder_.at(a).frac - first);
    const IntegerId low = width <= 61 ? builder_.wrap(a, width, false) : a;
    return builder_.shift(builder_.round(low, drop, rounding), drop - first);
  }

  IntegerId limited(IntegerId value, const FloatSpec& spec) {
    const IntegerNode& node = builder_.at(value);
    const double limit = std::ldexp(static_cast<double>(spec.largest), node.frac);
    if (static_cast<double>(node.range.high) <= limit) return value;
    if (spec.to_infinity)
      throw Error(place_, "its values may become infinite, which no integer is",
                  "use a format that saturates");
    return builder_.clamp(value, 0, static_cast<int64_t>(limit));
  }

  IntegerId whole_element(IntegerId a, const BlockSpec& spec, IntegerRounding rounding,
                          const std::map<int, IntegerId>& at_least, int lowest, int frac,
                          int first) {
    // With S no magnitude of the block reaches 2^(S + offset + 1), unless S is cut off.
    const auto of = [&](int s) {
      const int drop = std::max(s + frac, first);
      return sliced(a, drop, first, s == spec.most ? 62 : s + spec.offset + 1 + frac, rounding);
    };
    // Up to here nothing is dropped.
    const int base =
        std::clamp(first - frac, lowest, at_least.empty() ? lowest : at_least.rbegin()->first);
    IntegerId value = of(base);
    for (const auto& [s, when] : at_least)
      if (s > base) value = builder_.select(when, of(s), value);
    return value;
  }

  IntegerId float_element(IntegerId a, const BlockSpec& spec, IntegerRounding rounding,
                          const std::map<int, IntegerId>& at_least, int frac, int first) {
    const int precision = spec.element.mantissa + 1, top = bits_of(builder_.at(a).range.high);
    const int finest = spec.element.emin - spec.element.mantissa;
    IntegerId value = sliced(a, first, first, first + precision, rounding);
    const int coarsest = at_least.empty() ? first : finest + at_least.rbegin()->first + frac;
    for (int drop = first + 1; drop <= std::max(coarsest, top - precision); ++drop) {
      IntegerId when = reaches(a, int64_t{1} << std::min(drop - 1 + precision, 61));
      if (const auto shared = at_least.find(drop - finest - frac); shared != at_least.end())
        when = either(when, shared->second);
      value = builder_.select(when, sliced(a, drop, first, drop + precision, rounding), value);
    }
    return value;
  }

  IntegerBuilder& builder_;
  std::string place_;
};

float value_of(const IntegerNode& node, int64_t code) {
  return static_cast<float>(std::ldexp(static_cast<double>(code), -node.frac));
}

// Codes of values at one binary point that holds them all.
struct ValueCodes {
  int frac = 0;
  std::vector<int64_t> codes;
};
ValueCodes codes_of(const std::vector<float>& values, const std::string& place) {
  ValueCodes result;
  for (const float value : values)
    if (value != 0) result.frac = std::max(result.frac, dyadic(value, place).frac);
  for (const float value : values) {
    const double code = std::ldexp(static_cast<double>(value), result.frac);
    if (std::abs(code) > 0x1p40)
      throw Error(place, "its results need more than 40 bits", "round them to a coarser format");
    result.codes.push_back(static_cast<int64_t>(code));
  }
  return result;
}

struct Steps {
  std::vector<int64_t> thresholds;  // codes from which the next value holds
  std::vector<float> values;        // one more
};
// Whether every code between the steps has their value.
bool are_steps_of(const IntegerNode& node, const ValueFunction& function, const Steps& steps) {
  if (node.range.high - node.range.low >= all_codes_limit) return true;
  std::vector<float> values;
  for (int64_t code = node.range.low; code <= node.range.high; ++code)
    values.push_back(value_of(node, code));
  values = function(std::move(values));
  size_t step = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t code = node.range.low + static_cast<int64_t>(i);
    while (step < steps.thresholds.size() && code >= steps.thresholds[step]) ++step;
    if (values[i] != steps.values[step]) return false;
  }
  return true;
}

// A function that never falls, as its steps; nothing if it falls or has too many.
std::optional<Steps> steps_of(const IntegerNode& node, const ValueFunction& function) {
  const auto at = [&](int64_t code) { return function({value_of(node, code)})[0]; };
  Steps steps{{}, {at(node.range.low)}};
  int64_t from = node.range.low;
  const float last = at(node.range.high);
  while (steps.values.back() != last) {
    if (steps.values.size() >= step_limit) return {};
    int64_t below = from, above = node.range.high;
    while (above - below > 1) {
      const int64_t middle = below + (above - below) / 2;
      (at(middle) == steps.values.back() ? below : above) = middle;
    }
    steps.thresholds.push_back(above);
    steps.values.push_back(at(above));
    if (!(steps.values.back() > steps.values[steps.values.size() - 2])) return {};
    from = above;
  }
  if (!are_steps_of(node, function, steps)) return {};
  return steps;
}

// v0 + (v1 - v0) [x >= t1] + ...: comparisons with constants, then a sum that shares additions with
// the layer that reads it.
IntegerId lower_steps(IntegerBuilder& builder, IntegerId x, const Steps& steps,
                      const std::string& place) {
  const ValueCodes values = codes_of(steps.values, place);
  IntegerId sum = builder.constant(values.codes[0], values.frac);
  for (size_t k = 0; k < steps.thresholds.size(); ++k) {
    const IntegerId above =
        builder.compare(builder.constant(steps.thresholds[k] - 1, builder.at(x).frac), x);
    sum = builder.add(sum, 0,
                      builder.scale(above, values.codes[k + 1] - values.codes[k], values.frac), 0);
  }
  return sum;
}

std::vector<IntegerId> lower_blocks(IntegerBuilder& builder, const std::vector<IntegerId>& features,
                                    const Block& type, const std::string& format,
                                    const std::string& place) {
  const int64_t count = static_cast<int64_t>(features.size());
  if (block_form(type, {2, count}).block[0] != 1)
    throw Error(place, fmt::format("blocks of {} span several rows", format),
                "let a block hold features of one row (skip_first_dim)");
  const BlockSpec spec = block_spec(type);
  const std::optional<IntegerRounding> rounding = magnitude_rounding(spec.element.rounding);
  if (!rounding || spec.element.one_sided_zero)
    throw Error(place, fmt::format("{} has no exact integers for results of layers", format),
                "use mxint, mxfp or block_fp there; weights may stay as they are");
  std::vector<IntegerId> results(features.size(), -1);
  block_form(type, {1, count}).for_each([&](int64_t, const std::vector<Run>& runs) {
    std::vector<IntegerId> members;
    for (const Run& run : runs)
      for (int64_t i = run.offset; i < run.offset + run.length; ++i)
        members.push_back(features[static_cast<size_t>(i)]);
    const std::vector<IntegerId> rounded =
        MagnitudeRounding(builder, place).to_block(std::move(members), spec, *rounding);
    size_t next = 0;
    for (const Run& run : runs)
      for (int64_t i = run.offset; i < run.offset + run.length; ++i)
        results[static_cast<size_t>(i)] = rounded[next++];
  });
  return results;
}

// Floats and powers of two that are symmetric around zero.
std::optional<FloatSpec> symmetric_float(const NumberType& type) {
  FloatSpec spec;
  if (const Float* small = type.as<Float>())
    spec = float_spec(*small);
  else if (const Log* log = type.as<Log>())
    spec = float_spec(*log);
  else
    return {};
  if (spec.one_sided_zero || !magnitude_rounding(spec.rounding)) return {};
  return spec;
}

}  // namespace

IntegerId lower_table(IntegerBuilder& builder, IntegerId feature, const ValueFunction& function,
                      const std::string& place) {
  const IntegerNode x = builder.at(feature);
  const int64_t entries = x.range.high - x.range.low + 1;
  if (entries > table_limit)
    throw Error(place, fmt::format("a table of {} entries is too large", entries),
                "round its input to fewer bits first");
  std::vector<float> values;
  for (int64_t code = x.range.low; code <= x.range.high; ++code)
    values.push_back(value_of(x, code));
  const ValueCodes results = codes_of(function(std::move(values)), place);
  return builder.table(feature, x.range.low, results.frac, results.codes);
}

std::vector<IntegerId> lower_rounding(IntegerBuilder& builder,
                                      const std::vector<IntegerId>& features,
                                      const Quantizer& format, const std::string& place) {
  std::vector<IntegerId> results;
  if (const auto fixed = fixed_formats(format, features.size())) {
    for (size_t i = 0; i < features.size(); ++i)
      results.push_back(builder.requantize(features[i], (*fixed)[i]));
    return results;
  }
  if (const Block* block = format.type ? format.type->as<Block>() : nullptr)
    return lower_blocks(builder, features, *block, format.format, place);
  if (!is_function_of_value(format))
    throw Error(
        place,
        fmt::format("{} rounds a value by what stands beside it, or by chance: it has no exact "
                    "integers for results of layers",
                    format.format),
        "use integer, minifloat, power_of_two, log, mxint, mxfp, binary or ternary there; weights "
        "may stay as they are");
  const ValueFunction function = [&](std::vector<float> values) {
    format.quantize(values.data(), values.data(), {static_cast<int64_t>(values.size())});
    return values;
  };
  const std::optional<FloatSpec> small =
      format.type ? symmetric_float(*format.type) : std::optional<FloatSpec>();
  for (const IntegerId x : features) {
    const IntegerRange& range = builder.at(x).range;
    const bool few = range.high - range.low < 64;  // one look-up table a bit
    std::optional<Steps> steps;
    if (few)
      results.push_back(lower_table(builder, x, function, place));
    else if (small)
      results.push_back(MagnitudeRounding(builder, place)
                            .to_float(x, *small, *magnitude_rounding(small->rounding)));
    else if (never_falls(format) && (steps = steps_of(builder.at(x), function)))
      results.push_back(lower_steps(builder, x, *steps, place));
    else
      results.push_back(lower_table(builder, x, function, place));
  }
  return results;
}

InputCodes input_codes_of(const Quantizer& format, size_t features, const std::string& place) {
  InputCodes result;
  if (const auto fixed = fixed_formats(format, features)) {
    for (const FixedFormat& one : *fixed) {
      result.ranges.push_back(one.range());
      result.fracs.push_back(one.frac);
    }
    return result;
  }
  double lowest = 0, largest = 0;
  int frac = 0;
  const Binary* binary = format.type ? format.type->as<Binary>() : nullptr;
  const Block* block = format.type ? format.type->as<Block>() : nullptr;
  if (binary && !binary->scaled && is_function_of_value(format)) {
    result.sign_bits = true;
    largest = 1;
  } else if (block) {
    const BlockSpec spec = block_spec(*block);
    frac = -(spec.least + (spec.whole ? 0 : spec.element.emin - spec.element.mantissa));
    largest = std::ldexp(static_cast<double>(spec.element.largest), spec.most);
    lowest = -largest;
  } else {
    if (!is_function_of_value(format))
      throw Error(place,
                  fmt::format("{} rounds a network's inputs by what stands beside them, or by "
                              "chance: it has no exact integers for them",
                              format.format),
                  binary || (format.type && format.type->as<Ternary>())
                      ? "leave its scale out (binary: bipolar = true; ternary: a threshold and no "
                        "scaling_factor), or use integer there"
                      : "use integer without stochastic rounding, minifloat or mxint there");
    if (!format.lowest || !format.largest || !format.smallest_positive)
      throw Error(place, fmt::format("{} has no integers for a network's inputs", format.format),
                  "use integer, minifloat, mxint, binary or ternary there");
    frac = dyadic(*format.smallest_positive, place).frac;
    for (const double end : {*format.lowest, *format.largest})
      if (end != 0) frac = std::max(frac, dyadic(end, place).frac);
    lowest = *format.lowest;
    largest = *format.largest;
  }
  const double most = std::ldexp(std::max(-lowest, largest), frac);
  if (most >= 0x1p31)
    throw Error(place,
                fmt::format("{} needs {} bits as fixed point; the limit is 32", format.format,
                            std::ilogb(most) + 2),
                block                                     ? "give its scale fewer bits (scale_bits)"
                : format.type && format.type->as<Fixed>() ? "use fewer bits"
                                                          : "use fewer exponent bits");
  result.ranges.assign(features, {static_cast<int64_t>(std::ldexp(lowest, frac)),
                                  static_cast<int64_t>(std::ldexp(largest, frac))});
  result.fracs.assign(features, frac);
  return result;
}

}  // namespace mase
