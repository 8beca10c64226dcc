// SPDX-License-Identifier: Apache-2.0
// What holds for every format: codes round-trip, quantising is idempotent, monotone and nearest,
// zero, NaN and infinities, and the vector kernels equal the scalar reference on random bit
// patterns. The formats come from the registry, so a new one is tested by existing.
// MASE_LONG_TESTS=1 takes 10^8 patterns instead of 10^6.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "mase/base/random.h"
#include "mase/formats/measure.h"
#include "mase/formats/packing.h"
#include "support/support.h"

namespace mase {
namespace {

struct Case {
  std::string format;
  Value config;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const FormatRecord* record : Registry<FormatRecord>::instance().all()) {
    if (!record->ladder) all.push_back({record->name, Dict()});
    if (record->ladder)
      for (Value& config : record->ladder(4)) all.push_back({record->name, config});
  }
  const auto add = [&](const char* format, Dict config) {
    all.push_back({format, std::move(config)});
  };
  for (const int width : {1, 2, 5, 8, 10})
    for (const int frac : {-3, 0, 4, 12})
      add("integer", {{"width", width}, {"frac_width", frac}, {"is_signed", false}});
  for (const char* rounding : {"half_away", "toward_zero", "floor", "stochastic"})
    add("integer", {{"width", 8}, {"frac_width", 3}, {"rounding", rounding}});
  add("integer", {{"width", 32}, {"frac_width", 8}});
  for (const int e : {1, 2, 3, 4, 5, 6, 8})
    for (const int m : {0, 1, 3, 7})
      for (const char* specials : {"none", "nan", "ieee"})
        if (std::string(specials) != "ieee" || (e > 1 && m > 0))
          add("float", {{"exponent_width", e}, {"mantissa_width", m}, {"specials", specials}});
  add("half", {{"overflow", "infinity"}});
  add("bfloat16", {{"overflow", "infinity"}});
  add("e5m2", {{"rounding", "half_away"}});
  add("e5m2", {{"rounding", "toward_zero"}});
  for (const int bias : {-4, 0, 20})
    for (const char* format : {"minifloat_ieee", "minifloat_denorm"})
      add(format, {{"width", 7}, {"exponent_width", 3}, {"exponent_bias", bias}});
  for (const char* format : {"minifloat_ieee", "minifloat_denorm"})
    add(format, {{"width", 10}, {"exponent_width", 8}});
  for (const char* format : {"log", "power_of_two"})
    for (const int bias : {0, 3, 40}) add(format, {{"width", 6}, {"exponent_bias", bias}});
  add("log", {{"width", 2}});
  add("log", {{"width", 9}});
  for (const char* rounding : {"half_away", "toward_zero"}) {
    add("mxint", {{"width", 5}, {"rounding", rounding}, {"block_size", 16}});
    add("mxfp", {{"exponent_width", 4}, {"frac_width", 3}, {"rounding", rounding}, {"axis", 0}});
  }
  for (const int block : {1, 3, 8, 16, 100}) add("mxint", {{"width", 8}, {"block_size", block}});
  add("mxint", {{"width", 4}, {"axis", 0}});
  add("block_fp", {{"width", 6}, {"exponent_width", 4}});
  add("block_fp",
      {{"width", 6}, {"block_size", List{Value(2), Value(8)}}, {"skip_first_dim", false}});
  add("scale_integer", {{"width", 8}, {"granularity", "tensor"}});
  add("scale_integer", {{"width", 8}, {"granularity", "channel"}, {"axis", -1}});
  add("scale_integer", {{"width", 4}, {"affine", true}});
  add("scale_integer", {{"width", 8}, {"is_signed", false}, {"affine", true}});
  add("ternary", {{"threshold", 0.5}});
  return all;
}

std::string text_of(const Case& item) { return item.format + " " + python_repr(item.config); }

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

std::vector<float> quantized(const Quantizer& q, const std::vector<float>& x, const Shape& shape) {
  std::vector<float> y(x.size());
  q.quantize(x.data(), y.data(), shape);
  return y;
}

// Random bit patterns: every exponent is as likely as any other, NaN and infinities included.
std::vector<float> patterns(size_t count, uint64_t seed) {
  Random random(seed, "patterns");
  std::vector<float> x(count);
  for (float& value : x) value = std::bit_cast<float>(random.next_word());
  const float inf = std::numeric_limits<float>::infinity();
  const float special[] = {
      0.0f, -0.0f, inf, -inf, 0x1p-149f, -0x1p-149f, 0x1p-126f, 0x1.fffffep127f, -0x1.fffffep127f};
  for (size_t i = 0; i < std::size(special) && i < count; ++i) x[i * 7 % count] = special[i];
  return x;
}

// Values around 1, as networks have them.
std::vector<float> ordinary(size_t count, uint64_t seed) {
  Random random(seed, "ordinary");
  std::vector<float> x(count);
  for (float& value : x) value = static_cast<float>(random.normal() * std::exp(random.normal()));
  return x;
}

TEST(Formats, VectorKernelsEqualTheReference) {
  const size_t chunk = 8192 + 13;
  const size_t rounds = std::getenv("MASE_LONG_TESTS") ? 100000000 / chunk + 1 : 2;
  for (const Case& item : cases()) {
    const auto q = make_quantizer(item.format, item.config);
    for (size_t round = 0; round < rounds; ++round)
      for (const bool bits : {true, false}) {
        if (rounds > 2 && !bits) continue;
        const auto x = bits ? patterns(chunk, round) : ordinary(chunk, round);
        const Shape shape = round % 2 ? Shape{5, 1641} : Shape{static_cast<int64_t>(chunk)};
        const std::vector<float> vector = quantized(*q, x, shape);
        std::vector<float> scalar(chunk);
        q->reference(x.data(), scalar.data(), shape);
        size_t wrong = 0;
        for (size_t i = 0; i < chunk; ++i)
          if (!same(vector[i], scalar[i]) && wrong++ == 0)
            ADD_FAILURE() << text_of(item) << " x=" << x[i] << " vector=" << vector[i]
                          << " scalar=" << scalar[i];
      }
  }
}

TEST(Formats, QuantisingTwiceChangesNothing) {
  for (const Case& item : cases()) {
    if (item.config["rounding"].is_string() && item.config["rounding"].as_string() == "stochastic")
      continue;
    const auto q = make_quantizer(item.format, item.config);
    for (const Shape& shape : {Shape{4096}, Shape{64, 64}, Shape{4, 16, 8, 8}}) {
      const auto once = quantized(*q, ordinary(4096, 3), shape);
      const auto twice = quantized(*q, once, shape);
      size_t wrong = 0;
      for (size_t i = 0; i < once.size(); ++i)
        if (!same(once[i], twice[i]) && wrong++ == 0)
          ADD_FAILURE() << text_of(item) << " " << once[i] << " becomes " << twice[i];
    }
  }
}

TEST(Formats, ElementwiseOnesAreMonotone) {
  for (const Case& item : cases()) {
    const auto q = make_quantizer(item.format, item.config);
    if (!q->elementwise || q->quantize_drawn) continue;
    std::vector<float> x = patterns(20000, 11);
    x.erase(std::remove_if(x.begin(), x.end(), [](float v) { return std::isnan(v); }), x.end());
    std::sort(x.begin(), x.end());
    const auto y = quantized(*q, x, {static_cast<int64_t>(x.size())});
    EXPECT_TRUE(std::is_sorted(y.begin(), y.end())) << text_of(item);
  }
}

// Formats that decide by a threshold, or round to one side on purpose.
bool rounds_to_nearest(const Case& item) {
  if (item.format == "ternary" || item.format == "integer_floor") return false;
  if (item.format == "binary_residual") return false;  // its thirds are rounded sums
  const Value& rounding = item.config["rounding"];
  return !rounding.is_string() || rounding.as_string() == "half_away";
}

TEST(Formats, NoRepresentableValueIsNearer) {
  for (const Case& item : cases()) {
    const auto q = make_quantizer(item.format, item.config);
    if (!q->elementwise || !rounds_to_nearest(item)) continue;
    const std::vector<float> values = representable_values(*q);
    if (values.empty()) continue;
    std::vector<float> x = patterns(20000, 5);
    const auto more = ordinary(20000, 6);
    x.insert(x.end(), more.begin(), more.end());
    if (q->code_bits <= 10)
      for (size_t i = 0; i + 1 < values.size(); ++i) {
        const auto middle =
            static_cast<float>((static_cast<double>(values[i]) + values[i + 1]) / 2);
        x.insert(x.end(), {values[i], middle, std::nextafter(middle, values[i]),
                           std::nextafter(middle, values[i + 1])});
      }
    const auto y = quantized(*q, x, {static_cast<int64_t>(x.size())});
    size_t wrong = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (!std::isfinite(x[i]) || !std::isfinite(y[i])) continue;
      const auto above = std::lower_bound(values.begin(), values.end(), x[i]);
      double best = std::numeric_limits<double>::infinity();
      if (above != values.end()) best = std::min(best, static_cast<double>(*above) - x[i]);
      if (above != values.begin()) best = std::min(best, static_cast<double>(x[i]) - above[-1]);
      if (std::fabs(static_cast<double>(y[i]) - x[i]) > best && wrong++ == 0)
        ADD_FAILURE() << text_of(item) << " x=" << x[i] << " got " << y[i]
                      << ", distance should be " << best;
    }
  }
}

TEST(Formats, EveryCodeRoundTrips) {
  for (const Case& item : cases()) {
    const auto q = make_quantizer(item.format, item.config);
    if (!q->elementwise || !q->code_bits || q->code_bits > 16) continue;
    const std::vector<float> values = code_values(*q);
    const auto back = q->encode(values.data(), {static_cast<int64_t>(values.size())}).codes;
    size_t repeated = 0;
    for (size_t code = 0; code < values.size(); ++code) {
      if (back[code] == code) continue;
      // Another code of the same value: only formats without hidden bit have those. All of OCP's
      // NaN codes are one.
      ++repeated;
      EXPECT_TRUE(same(values[back[code]], values[code])) << text_of(item) << " code " << code;
      EXPECT_EQ(back[back[code]], back[code]);
    }
    if (item.format != "minifloat_denorm" && item.format != "ternary") {
      EXPECT_EQ(repeated, 0u) << text_of(item);
    }
  }
}

TEST(Formats, DecodingGivesWhatQuantisingGives) {
  for (const Case& item : cases()) {
    const auto q = make_quantizer(item.format, item.config);
    if (!q->code_bits || q->quantize_drawn) continue;
    for (const Shape& shape : {Shape{1024}, Shape{24, 40}, Shape{2, 3, 6, 8}}) {
      const auto x = ordinary(static_cast<size_t>(element_count(shape)), 9);
      const auto codes = q->encode(x.data(), shape);
      std::vector<float> y(x.size());
      q->decode(codes, y.data(), shape);
      EXPECT_EQ(y, quantized(*q, x, shape)) << text_of(item);
      const auto packed = pack_codes(codes.codes, q->code_bits);
      EXPECT_EQ(packed.size(), (x.size() * static_cast<size_t>(q->code_bits) + 7) / 8);
      EXPECT_EQ(unpack_codes(packed, q->code_bits, x.size()), codes.codes) << text_of(item);
    }
  }
}

TEST(Formats, ZeroNanAndInfinity) {
  const float inf = std::numeric_limits<float>::infinity();
  for (const Case& item : cases()) {
    const auto q = make_quantizer(item.format, item.config);
    const auto y = quantized(*q, {0, std::nanf(""), inf, -inf, 1}, {5});
    const bool no_zero = item.format == "binary" || item.format == "binary_residual";
    if (!no_zero) {
      EXPECT_EQ(y[0], 0) << text_of(item);
    }
    EXPECT_TRUE(std::isnan(y[1])) << text_of(item);
    EXPECT_FALSE(std::isnan(y[2])) << text_of(item);
    // An infinity alone in its block has nothing to be scaled by.
    if (q->elementwise) {
      EXPECT_GE(y[2], y[4]) << text_of(item);
    }
    EXPECT_LE(y[3], y[0]) << text_of(item);
    EXPECT_FALSE(std::isnan(y[4])) << text_of(item);
  }
}

TEST(Formats, BlockElementsAreNearestForTheirExponent) {
  for (const Case& item : cases()) {
    const auto q = make_quantizer(item.format, item.config);
    if (q->elementwise || !q->code_bits || q->code_bits > 8 || !rounds_to_nearest(item)) continue;
    if (!q->encode(std::vector<float>{1}.data(), {1}).scales.empty()) continue;
    const std::vector<float> elements = representable_values(*q);
    for (uint64_t seed = 0; seed < 200; ++seed) {
      const auto x = ordinary(8, seed);
      const Shape shape = {1, 8};
      const auto codes = q->encode(x.data(), shape);
      if (codes.exponents.size() != 1) continue;
      const auto y = quantized(*q, x, shape);
      for (size_t i = 0; i < x.size(); ++i) {
        double best = std::numeric_limits<double>::infinity();
        for (const float element : elements) {
          // Two's complement has one more negative number than the symmetric format uses.
          if (item.format == "mxint" && element == elements.front()) continue;
          best = std::min(
              best, std::fabs(std::ldexp(element, codes.exponents[0]) - static_cast<double>(x[i])));
        }
        EXPECT_LE(std::fabs(static_cast<double>(y[i]) - x[i]), best) << text_of(item) << x[i];
      }
    }
  }
}

TEST(Formats, BitsPerValueCountSharedParts) {
  const auto bits = [](const char* format, Dict config, const Shape& shape) {
    return make_quantizer(format, Value(config))->bits_per_value(shape);
  };
  EXPECT_EQ(bits("integer", {{"width", 4}}, {10}), 4);
  EXPECT_EQ(bits("e4m3", {}, {10}), 8);
  EXPECT_EQ(bits("mxfp", {{"exponent_width", 2}, {"frac_width", 1}}, {2, 64}), 4.25);
  EXPECT_EQ(bits("mxint", {{"width", 8}, {"block_size", 16}}, {3, 16}), 8.5);
  // A partial last block has a whole scale.
  EXPECT_EQ(bits("mxint", {{"width", 8}, {"block_size", 16}}, {24}), 8 + 16.0 / 24);
  EXPECT_EQ(bits("block_fp", {{"width", 4}, {"block_size", List{Value(1), Value(16)}}}, {4, 32}),
            4.5);
}

TEST(Formats, LimitsOfTheNamedOnes) {
  const auto largest = [](const char* name) { return *make_quantizer(name, Dict())->largest; };
  EXPECT_EQ(largest("e4m3"), 448);
  EXPECT_EQ(largest("e4m3fn"), 448);
  EXPECT_EQ(largest("e4m3_finite"), 480);
  EXPECT_EQ(largest("e5m2"), 57344);
  EXPECT_EQ(largest("e3m2"), 28);
  EXPECT_EQ(largest("e2m3"), 7.5);
  EXPECT_EQ(largest("e2m1"), 6);
  EXPECT_EQ(largest("half"), 65504);
  EXPECT_EQ(largest("bfloat16"), 0x1.fep127);
  EXPECT_EQ(largest("tf32"), 0x1.ffcp127);
}

TEST(Formats, HalfAndBfloat16AreTheStandardConversions) {
  const auto half = make_quantizer("half", Dict{{"overflow", "infinity"}});
  const auto brain = make_quantizer("bfloat16", Dict{{"overflow", "infinity"}});
  const auto x = patterns(100000, 1);
  const auto h = quantized(*half, x, {100000}), b = quantized(*brain, x, {100000});
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(same(h[i], half_to_float(float_to_half(x[i])))) << x[i];
    ASSERT_TRUE(same(b[i], bfloat16_to_float(float_to_bfloat16(x[i])))) << x[i];
  }
}

}  // namespace
}  // namespace mase
