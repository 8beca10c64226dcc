// SPDX-License-Identifier: Apache-2.0
// Fixed point by its definition, worked out here once more in whole numbers: every rounding, both
// kinds of overflow, and numbers that differ from row to row and from value to value.
#include <hwy/targets.h>
#include <rapidcheck.h>
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include "formats/every_format.h"
#include "mase/base/random.h"
#include "mase/formats/format.h"
#include "mase/formats/packing.h"
#include "support/support.h"

namespace mase::number_type_test {
namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

// floor(|x| * 2^frac) and what is left, exactly: x has 24 bits.
struct Parts {
  bool negative;
  int64_t whole;
  int left;  // 0, below a half, a half, above: 0, 1, 2, 3
};
Parts parts_of(float x, int frac) {
  int exponent = 0;
  const auto k = static_cast<int64_t>(std::ldexp(std::frexp(std::fabs(x), &exponent), 24));
  const int shift = exponent - 24 + frac;  // |x| * 2^frac = k * 2^shift
  // Beyond the widest range by so much that only its low bits, all zero, and its size count.
  if (shift > 38) return {x < 0, k == 0 ? 0 : int64_t{1} << 62, 0};
  if (shift >= 0) return {x < 0, k << shift, 0};
  if (shift < -40) return {x < 0, 0, k == 0 ? 0 : 1};
  const int64_t half = int64_t{1} << (-shift - 1), rest = k & (2 * half - 1);
  return {x < 0, k >> -shift, rest == 0 ? 0 : rest < half ? 1 : rest == half ? 2 : 3};
}

int64_t rounded(const Parts& p, Rounding rounding) {
  const bool odd = p.whole & 1;
  bool up = false;  // in magnitude
  switch (rounding) {
    case Rounding::nearest_even:
      up = p.left == 3 || (p.left == 2 && odd);
      break;
    case Rounding::half_up:
      up = p.left == 3 || (p.left == 2 && !p.negative);
      break;
    case Rounding::half_away:
      up = p.left >= 2;
      break;
    case Rounding::half_toward_zero:
      up = p.left == 3;
      break;
    case Rounding::toward_zero:
      break;
    case Rounding::away_from_zero:
      up = p.left > 0;
      break;
    case Rounding::floor:
      up = p.left > 0 && p.negative;
      break;
    case Rounding::ceil:
      up = p.left > 0 && !p.negative;
      break;
    case Rounding::stochastic:
      break;
  }
  const int64_t magnitude = p.whole + up;
  return p.negative ? -magnitude : magnitude;
}

double expected(const Fixed& type, float x) {
  if (std::isnan(x)) return x;
  // The product with 2^frac is a float: what vanishes there is zero.
  if (type.width == 0 || x * std::ldexp(1.0f, type.frac) == 0) return 0;
  const auto low = static_cast<int64_t>(lowest_code(type));
  const auto high = static_cast<int64_t>(largest_code(type));
  int64_t k = 0;
  if (std::isinf(x))
    k = type.overflow == Overflow::wrap ? 0 : x > 0 ? high : low;
  else
    k = rounded(parts_of(x, type.frac), type.rounding);
  if (type.overflow == Overflow::wrap) {
    const int64_t codes = int64_t{1} << type.width;
    k = ((k - low) % codes + codes) % codes + low;
  } else {
    k = std::min(std::max(k, low), high);
  }
  return std::ldexp(static_cast<double>(k), -type.frac);
}

const Rounding roundings[] = {Rounding::nearest_even, Rounding::half_up,
                              Rounding::half_away,    Rounding::half_toward_zero,
                              Rounding::toward_zero,  Rounding::away_from_zero,
                              Rounding::floor,        Rounding::ceil};

// Bit patterns of every kind, and numbers at and beside the codes and the middles between them.
std::vector<float> hostile(const Fixed& type, size_t count, uint64_t seed) {
  Random random(seed, "hostile");
  std::vector<float> x = {0,         -0.0f,      infinity,        -infinity,       std::nanf(""),
                          0x1p-149f, -0x1p-149f, 0x1.fffffep127f, -0x1.fffffep127f};
  while (x.size() < count) {
    const double code = random.uniform(2 * lowest_code(type) - 4, 2 * largest_code(type) + 4);
    const auto near = static_cast<float>(std::ldexp(std::floor(2 * code) / 2, -type.frac));
    x.insert(x.end(), {near, std::nextafter(near, infinity), std::nextafter(near, -infinity),
                       std::bit_cast<float>(random.next_word())});
  }
  x.resize(count);
  return x;
}

bool agrees(const NumberType& type, const std::vector<float>& x, const Shape& shape,
            const std::vector<double>& want) {
  const Quantizer q = typed_quantizer(type);
  std::vector<float> y(x.size()), plain(x.size());
  q.quantize(x.data(), y.data(), shape);
  q.reference(x.data(), plain.data(), shape);
  for (size_t i = 0; i < x.size(); ++i) {
    const bool nan = std::isnan(want[i]) && std::isnan(y[i]) && std::isnan(plain[i]);
    if (nan || (y[i] == want[i] && plain[i] == want[i])) continue;
    ADD_FAILURE() << type_text(type) << ": " << x[i] << " at " << i << " of " << shape_text(shape)
                  << " gives " << y[i] << ", plainly " << plain[i] << ", not " << want[i];
    return false;
  }
  return true;
}

TEST(Fixed, EveryRoundingAndOverflowByDefinition) {
  for (const Rounding rounding : roundings)
    for (const Overflow overflow : {Overflow::saturate, Overflow::wrap})
      for (const bool is_signed : {true, false})
        for (const int width : {0, 1, 2, 3, 8, 12, 24})
          for (const int frac : {-3, 0, 1, 4, 12, 30}) {
            const Fixed type{is_signed, width, frac, rounding, overflow};
            const std::vector<float> x = hostile(type, 203, static_cast<uint64_t>(width + frac));
            std::vector<double> want;
            for (const float value : x) want.push_back(expected(type, value));
            ASSERT_TRUE(agrees({type}, x, {203}, want));
          }
}

TEST(Fixed, HalfUpIsOneConstantAndACut) {
  // floor(x * 2^f + 1/2), computed exactly in double precision.
  const Quantizer q = typed_quantizer({Fixed{true, 16, 8, Rounding::half_up}});
  for (int i = -20000; i <= 20000; ++i) {
    const auto x = static_cast<float>(i) * 0x1p-10f;
    float y = 0;
    q.quantize(&x, &y, {1});
    EXPECT_EQ(y, std::floor(std::ldexp(static_cast<double>(x), 8) + 0.5) / 256) << x;
  }
}

TEST(Fixed, NarrowLeavesOutTheLowest) {
  const Quantizer q = typed_quantizer({Fixed{.width = 4, .frac = 0, .narrow = true}});
  const float x[] = {-9, -8, -7.6f, -7.4f, 7, 8};
  float y[6];
  q.quantize(x, y, {6});
  EXPECT_EQ(std::vector<float>(y, y + 6), (std::vector<float>{-7, -7, -7, -7, 7, 7}));
  EXPECT_EQ(*q.lowest, -7);
}

// A tensor whose groups have types of their own, with the types its values should have.
struct Grouped {
  NumberType type;
  Shape shape;
  std::vector<float> x;
  std::vector<double> want;
};

Grouped random_grouped(uint64_t seed) {
  Random random(seed, "grouped");
  const auto pick = [&](int least, int most) {
    return least + static_cast<int>(random.uniform() * (most - least + 1));
  };
  Grouped result;
  const int rank = pick(1, 4);
  for (int i = 0; i < rank; ++i) result.shape.push_back(pick(1, rank > 2 ? 6 : 40));
  Granularity granularity;
  if (pick(0, 1)) {
    granularity = {Granularity::Kind::axis, pick(-rank, rank - 1)};
  } else {
    granularity = {Granularity::Kind::element, 0, pick(0, 1) == 1};
  }
  Fixed fixed;
  fixed.is_signed = pick(0, 1);
  fixed.rounding = roundings[pick(0, 7)];
  fixed.overflow = pick(0, 1) ? Overflow::wrap : Overflow::saturate;
  // Worked out from the coordinates of every value, not from runs.
  const int64_t total = element_count(result.shape);
  std::vector<int64_t> group(static_cast<size_t>(total));
  int64_t groups = 0;
  for (int64_t i = 0; i < total; ++i) {
    std::vector<int64_t> at(result.shape.size());
    int64_t rest = i;
    for (size_t d = result.shape.size(); d-- > 0;) {
      at[d] = rest % result.shape[d];
      rest /= result.shape[d];
    }
    int64_t& g = group[static_cast<size_t>(i)];
    if (granularity.kind == Granularity::Kind::axis)
      g = at[static_cast<size_t>((granularity.axis + rank) % rank)];
    else
      g = granularity.batch ? i % (total / result.shape[0]) : i;
    groups = std::max(groups, g + 1);
  }
  for (int64_t g = 0; g < groups; ++g) {
    fixed.widths.push_back(pick(0, 24));
    fixed.fracs.push_back(pick(-4, 20));
  }
  if (pick(0, 1)) {
    for (int64_t g = 0; g < groups; ++g) fixed.signs.push_back(pick(0, 1));
    fixed.is_signed = *std::max_element(fixed.signs.begin(), fixed.signs.end());
  }
  fixed.width = *std::max_element(fixed.widths.begin(), fixed.widths.end());
  fixed.frac = *std::max_element(fixed.fracs.begin(), fixed.fracs.end());
  for (int64_t i = 0; i < total; ++i) {
    const Fixed one = fixed_at(fixed, group[static_cast<size_t>(i)]);
    const std::vector<float> values = hostile(one, 16, seed + static_cast<uint64_t>(i));
    result.x.push_back(values[static_cast<size_t>(pick(0, 15))]);
    result.want.push_back(expected(one, result.x.back()));
  }
  result.type = {fixed, granularity};
  return result;
}

TEST(Fixed, NumbersPerRowAndPerValueByDefinition) {
  EXPECT_TRUE(rc::check("", [](uint32_t seed) {
    const Grouped item = random_grouped(seed);
    RC_ASSERT(agrees(item.type, item.x, item.shape, item.want));
  }));
}

TEST(Fixed, NumbersPerValueOnEveryInstructionSet) {
  const int64_t all = hwy::SupportedTargets();
  for (int64_t left = all; left; left &= left - 1) {
    hwy::GetChosenTarget().Update(left & -left);
    for (uint64_t seed = 0; seed < 60; ++seed) {
      const Grouped item = random_grouped(seed);
      ASSERT_TRUE(agrees(item.type, item.x, item.shape, item.want));
    }
  }
  hwy::GetChosenTarget().Update(all);
}

TEST(Fixed, CodesOfNumbersPerGroupGiveTheValues) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    const Grouped item = random_grouped(seed);
    const Quantizer q = typed_quantizer(item.type);
    if (!q.code_bits) continue;
    const Quantizer::Codes codes = q.encode(item.x.data(), item.shape);
    std::vector<float> y(item.x.size());
    q.decode(codes, y.data(), item.shape);
    for (size_t i = 0; i < y.size(); ++i) {
      EXPECT_LT(codes.codes[i], uint64_t{1} << q.code_bits);
      if (!std::isnan(item.x[i])) {
        EXPECT_EQ(y[i], item.want[i]) << type_text(item.type);
      }
    }
  }
}

TEST(Fixed, ConfigsWithLists) {
  const auto q = make_quantizer("integer", Dict{{"width", List{Value(4), Value(0), Value(8)}},
                                                {"frac_width", List{Value(0), Value(0), Value(4)}},
                                                {"granularity", "row"},
                                                {"skip_first_dim", false}});
  const Tensor x = Tensor::of<float>({3, 2}, std::vector<float>{9, -9, 3, -3, 0.07f, 99});
  const Tensor y = quantize(*q, x);
  EXPECT_EQ(std::vector<float>(y.data<float>(), y.data<float>() + 6),
            (std::vector<float>{7, -8, 0, 0, 0.0625f, 7.9375f}));
  EXPECT_EQ(q->bits_per_value({3, 2}), 4);
  EXPECT_TRUE(code_values(*q).empty());
  EXPECT_FALSE(q->elementwise);
  EXPECT_FALSE(q->largest);
  EXPECT_TRUE(misfit(*q, {4, 2}));
  EXPECT_FALSE(misfit(*q, {3, 2}));
  EXPECT_THROW(quantize(*q, Tensor({4, 2})), Error);
  const auto fails = [](const Dict& config) {
    try {
      make_quantizer("integer", Value(config));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const Value two = List{Value(4), Value(5)};
  EXPECT_NE(fails({{"width", two}}).find("a list of numbers for one tensor"), std::string::npos);
  EXPECT_NE(fails({{"width", two},
                   {"frac_width", List{Value(1), Value(2), Value(3)}},
                   {"granularity", "row"}})
                .find("lists of 2 widths, 3 fraction widths and 1 signs"),
            std::string::npos);
  EXPECT_NE(fails({{"width", 25}, {"overflow", "wrap"}}).find("at most 24"), std::string::npos);
  EXPECT_NE(fails({{"width", "8"}}).find("expected an integer or a list"), std::string::npos);
  EXPECT_NE(fails({{"width", List{Value(4), Value(65)}}}).find("from 0 to 64"), std::string::npos);
  EXPECT_NE(fails({{"width", two}, {"granularity", "row"}, {"rounding", "stochastic"}})
                .find("not rounded at random"),
            std::string::npos);
}

TEST(Fixed, ClippedGradientKnowsTheRangeOfEachGroup) {
  const auto q = make_quantizer("integer", Dict{{"width", List{Value(2), Value(8)}},
                                                {"frac_width", 0},
                                                {"granularity", "row"},
                                                {"axis", 0},
                                                {"ste", "clipped"}});
  const float x[] = {1, 3, 3, 200}, g[] = {1, 1, 1, 1};
  float dx[4];
  q->gradient(x, g, dx, {2, 2});
  EXPECT_EQ(std::vector<float>(dx, dx + 4), (std::vector<float>{1, 0, 1, 0}));
}

// clamp(round(x / s) + z), the rule of ONNX's QuantizeLinear, per channel. QONNX's Quant rounds
// x / s + z, which is the same but for ties at an odd zero point.
TEST(GivenScale, RoundsByTheRuleOfQuantizeLinear) {
  const auto q = make_quantizer("scale_integer", Dict{{"width", 4},
                                                      {"is_signed", false},
                                                      {"step", List{Value(0.5), Value(0.1)}},
                                                      {"zero_point", List{Value(3), Value(8)}},
                                                      {"granularity", "channel"}});
  const double steps[] = {0.5, 0.1}, zeros[] = {3, 8};
  std::vector<float> x;
  for (int i = 0; i < 200; ++i) x.push_back(static_cast<float>(i % 100 - 50) * 0.17f);
  std::vector<float> y(x.size());
  q->quantize(x.data(), y.data(), {2, 100});
  for (size_t i = 0; i < x.size(); ++i) {
    const double s = steps[i / 100], z = zeros[i / 100];
    const double k = std::clamp(std::nearbyint(x[i] / s) + z, 0.0, 15.0);
    EXPECT_EQ(y[i], static_cast<float>((k - z) * s)) << x[i];
  }
  EXPECT_TRUE(misfit(*q, {3, 100}));
  EXPECT_THROW(make_quantizer("scale_integer", Dict{{"width", 4}, {"zero_point", 1}}), Error);
  EXPECT_THROW(make_quantizer("scale_integer", Dict{{"width", 4}, {"step", -1.0}}), Error);
  EXPECT_THROW(
      make_quantizer("scale_integer", Dict{{"width", 4}, {"step", 1.0}, {"zero_point", 8}}), Error);
}

// Every config either means a number type or says why it does not; what follows from the type is
// what the quantizer does.
TEST(NumberType, EveryConfigHasOneOrAReason) {
  for (const test::FormatCase& item : test::some_cases()) {
    const Quantizer& q = *item.quantizer;
    EXPECT_NE(q.type.has_value(), !q.untyped.empty()) << item.text();
    if (!q.type) {
      const std::set<std::string> untyped = {"binary_residual", "bipolar", "nf4"};
      EXPECT_TRUE(item.by_reference() || item.stochastic() || untyped.count(item.format))
          << item.text();
      continue;
    }
    EXPECT_EQ(q.elementwise, is_elementwise(*q.type)) << item.text();
    EXPECT_FALSE(type_text(*q.type).empty());
    if (q.code_bits) {
      EXPECT_EQ(q.code_bits, code_width(*q.type)) << item.text();
    }
    // The same type makes the same quantizer, whatever the format was called.
    const Quantizer again = typed_quantizer(*q.type);
    const std::vector<float> x = hostile(Fixed{}, 96, 3);
    std::vector<float> a(x.size()), b(x.size());
    q.quantize(x.data(), a.data(), {4, 24});
    again.quantize(x.data(), b.data(), {4, 24});
    for (size_t i = 0; i < x.size(); ++i)
      ASSERT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) << item.text();
  }
}

// However groups lie in a tensor, each is rounded as it would be alone, has its own scale and
// decodes to what was rounded.
TEST(Rounder, EveryGroupIsRoundedAsIfAlone) {
  using Kind = Granularity::Kind;
  Random random(31, "groups");
  const std::vector<Shape> shapes = {{12}, {6, 8}, {4, 6, 5}, {2, 3, 4, 5}, {1, 1}, {0, 3}};
  int tried = 0;
  for (const Shape& shape : shapes)
    for (const Granularity granularity :
         {Granularity{Kind::tensor}, Granularity{Kind::row}, Granularity{Kind::axis, 0},
          Granularity{Kind::axis, -1}, Granularity{Kind::element},
          Granularity{Kind::element, 0, true}, Granularity{Kind::first},
          Granularity{.kind = Kind::run, .size = 5}, Granularity{.kind = Kind::run, .size = 100},
          Granularity{.kind = Kind::block, .size = 2}})
      for (const bool affine : {false, true}) {
        Scaled type{.is_signed = !affine, .width = 5, .narrow = !affine, .affine = affine};
        const Quantizer q = typed_quantizer({type, granularity});
        if (misfit(q, shape)) continue;
        const Quantizer alone = typed_quantizer({type, {}});
        std::vector<float> x(static_cast<size_t>(element_count(shape)));
        for (float& value : x) value = static_cast<float>(random.normal());
        std::vector<float> y(x.size()), plain(x.size()), decoded(x.size()), want(x.size());
        q.quantize(x.data(), y.data(), shape);
        q.reference(x.data(), plain.data(), shape);
        const Quantizer::Codes codes = q.encode(x.data(), shape);
        q.decode(codes, decoded.data(), shape);
        const Grouping groups = grouping(shape, granularity);
        EXPECT_EQ(codes.scales.size(), static_cast<size_t>(groups.groups * (affine ? 2 : 1)));
        std::vector<bool> seen(x.size());
        for (int64_t g = 0; g < groups.groups; ++g) {
          std::vector<float> own, rounded;
          groups.for_each(g, [&](int64_t i) {
            own.push_back(x[static_cast<size_t>(i)]);
            EXPECT_FALSE(seen[static_cast<size_t>(i)]);
            seen[static_cast<size_t>(i)] = true;
            EXPECT_EQ(groups.group_of(i), g);
          });
          rounded.resize(own.size());
          alone.quantize(own.data(), rounded.data(), {static_cast<int64_t>(own.size())});
          size_t next = 0;
          groups.for_each(g, [&](int64_t i) { want[static_cast<size_t>(i)] = rounded[next++]; });
        }
        EXPECT_EQ(std::count(seen.begin(), seen.end(), false), 0);
        EXPECT_EQ(y, want);
        EXPECT_EQ(plain, want);
        EXPECT_EQ(decoded, want);
        ++tried;
      }
  EXPECT_GT(tried, 80);
}

// Given steps that are powers of two are fixed point: layers of ONNX files get the integer
// products, bit operations and hardware of `integer`.
TEST(NumberType, StepsThatArePowersOfTwoAreFixedPoint) {
  const std::vector<float> x = hostile(Fixed{}, 500, 9);
  const auto check = [&](const char* format, const Dict& config, const Shape& shape) {
    const auto q = make_quantizer(format, Value(config));
    ASSERT_TRUE(q->type);
    const auto fixed = as_fixed(*q->type, true);
    ASSERT_TRUE(fixed) << type_text(*q->type);
    const Quantizer same = typed_quantizer({*fixed, q->type->granularity});
    std::vector<float> a(x.size()), b(x.size());
    q->quantize(x.data(), a.data(), shape);
    same.quantize(x.data(), b.data(), shape);
    for (size_t i = 0; i < x.size(); ++i)
      EXPECT_TRUE(a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) << x[i];
  };
  for (const char* rounding : {"nearest_even", "half_up", "floor", "half_away", "ceil"})
    for (const bool first : {false, true})
      for (const bool is_signed : {false, true})
        check("affine",
              {{"width", 6},
               {"scale", 0.125},
               {"is_signed", is_signed},
               {"rounding", rounding},
               {"zero_first", first}},
              {500});
  check("affine", {{"width", 4}, {"scale", 2.0}, {"narrow", true}}, {500});
  check("affine",
        {{"width", 4}, {"scale", List{Value(0.5), Value(4.0)}}, {"granularity", "channel"}},
        {2, 250});
  check("scale_integer", {{"width", 8}, {"step", 0.0625}}, {500});
  const auto none = [](const char* format, const Dict& config) {
    return !as_fixed(*make_quantizer(format, Value(config))->type, true);
  };
  EXPECT_TRUE(none("affine", {{"width", 4}, {"scale", 0.3}}));
  EXPECT_TRUE(none("affine", {{"width", 4}, {"scale", 0.5}, {"zero_point", 1.0}}));
  EXPECT_TRUE(none("affine", {{"width", 4}, {"is_signed", false}, {"narrow", true}}));
  EXPECT_TRUE(none("scale_integer", {{"width", 4}}));
  const Dict cut{{"width", 4}, {"scale", 0.5}, {"output_scale", 1.0}};
  EXPECT_TRUE(none("truncated", cut));                                           // rounds twice,
  EXPECT_TRUE(as_fixed(*make_quantizer("truncated", Value(cut))->type, false));  // to such numbers
}

TEST(NumberType, ListsOfGivenNumbersAreHeldToShapes) {
  const Value two = List{Value(0.5), Value(0.3)};
  for (const char* format : {"affine", "scaled_float", "bipolar"}) {
    Dict config{{"scale", two}, {"granularity", "channel"}, {"axis", 1}};
    if (std::string(format) == "affine") config.set("width", 4);
    const auto q = make_quantizer(format, Value(config));
    EXPECT_FALSE(misfit(*q, {3, 2})) << format;
    EXPECT_TRUE(misfit(*q, {2, 3})) << format;
    EXPECT_TRUE(misfit(*q, {2})) << format;
    const std::vector<float> x(6, 1.0f);
    std::vector<float> y(6);
    EXPECT_THROW(q->quantize(x.data(), y.data(), {2, 3}), Error);
  }
}

}  // namespace
}  // namespace mase::number_type_test
