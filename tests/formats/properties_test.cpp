// SPDX-License-Identifier: Apache-2.0
// What holds for every format: codes round-trip, quantising is idempotent, monotone and nearest,
// zero, NaN and infinities. Formats of at most 10 bits are checked at every value, middle and
// neighbour of a middle.
#include <bit>
#include <cmath>
#include <limits>

#include "formats/every_format.h"
#include "mase/base/random.h"
#include "mase/formats/packing.h"

namespace mase::properties_test {
namespace {

using test::FormatCase;

constexpr float infinity = std::numeric_limits<float>::infinity();
// Sanitizers look at the code, which is the same for every width.
constexpr int widest = test::sanitized ? 11 : 16, all_values_up_to = test::sanitized ? 8 : 10;

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

std::vector<float> quantized(const Quantizer& q, const std::vector<float>& x, const Shape& shape) {
  std::vector<float> y(x.size());
  q.quantize(x.data(), y.data(), shape);
  return y;
}

std::vector<float> normal_numbers(size_t count, uint64_t seed) {
  Random random(seed, "normal numbers");
  std::vector<float> x(count);
  for (float& value : x) value = static_cast<float>(random.normal() * std::exp(random.normal()));
  return x;
}

// A format whose scale comes from the data, with that scale held still: every value stands in a
// group of its own beside the largest and the lowest number.
class Held {
 public:
  explicit Held(const FormatCase& item) : q_(*item.quantizer), codes_(code_values(q_)) {
    for (const float value : codes_)
      if (std::isfinite(value)) largest_ = std::max(largest_, value);
    // The lowest number of two's complement is not used where the range is symmetric.
    const bool symmetric = !q_.elementwise && !(q_.config["affine"] == Value(true));
    for (const float value : codes_)
      if (std::isfinite(value) && !(symmetric && value < -largest_))
        lowest_ = std::min(lowest_, value);
    if (q_.elementwise) return;
    const float one = 1;
    const Quantizer::Codes probe = q_.encode(&one, {1});
    if (!probe.exponents.empty()) factor_ = std::ldexp(1.0f, probe.exponents[0]);
    if (!probe.scales.empty()) factor_ = item.format == "scale_integer" ? 0.25f : 1.0f;
  }

  const std::vector<float>& codes() const { return codes_; }
  float factor() const { return factor_; }
  // Never the result of rounding: beyond the range in use, or infinite in a block.
  bool is_unused(float value) const {
    if (q_.elementwise && q_.lowest && std::isfinite(value) && value < *q_.lowest) return true;
    return !q_.elementwise && (std::isinf(value) || value > largest_ || value < lowest_);
  }
  // The distinct numbers in use, ascending, scaled.
  std::vector<float> numbers() const {
    std::vector<float> result;
    for (const float value : codes_)
      if (std::isfinite(value) && !is_unused(value)) result.push_back(value * factor_);
    std::sort(result.begin(), result.end());
    result.erase(std::unique(result.begin(), result.end()), result.end());
    return result;
  }

  std::vector<float> quantize(const std::vector<float>& x) const {
    if (q_.elementwise) return quantized(q_, x, {static_cast<int64_t>(x.size())});
    return third(quantized(q_, beside(x), shape(x.size())), x.size());
  }
  std::vector<uint32_t> encode(const std::vector<float>& x) const {
    if (q_.elementwise) return q_.encode(x.data(), {static_cast<int64_t>(x.size())}).codes;
    return third(q_.encode(beside(x).data(), shape(x.size())).codes, x.size());
  }

 private:
  // Groups run along the last dimension, or down the first one.
  bool across() const {
    const std::vector<float> one = {1, 1, 1, 1, 1, 1};
    const auto codes = q_.encode(one.data(), {3, 2});
    return codes.exponents.size() == 2 ||
           (q_.config["granularity"] == Value("channel") && q_.config["axis"] == Value(-1));
  }
  Shape shape(size_t count) const {
    const auto n = static_cast<int64_t>(count);
    return across() ? Shape{3, n} : Shape{n, 3};
  }
  std::vector<float> beside(const std::vector<float>& x) const {
    std::vector<float> all(3 * x.size());
    const size_t n = x.size();
    for (size_t i = 0; i < n; ++i) {
      const float triple[] = {largest_ * factor_, lowest_ * factor_, x[i]};
      for (size_t k = 0; k < 3; ++k) all[across_ ? k * n + i : 3 * i + k] = triple[k];
    }
    return all;
  }
  template <class T>
  std::vector<T> third(const std::vector<T>& all, size_t n) const {
    std::vector<T> result(n);
    for (size_t i = 0; i < n; ++i) result[i] = all[across_ ? 2 * n + i : 3 * i + 2];
    return result;
  }

  const Quantizer& q_;
  std::vector<float> codes_;
  float largest_ = 0, lowest_ = 0, factor_ = 1;
  bool across_ = !q_.elementwise && across();
};

// A group of one value has nothing beside it that would hold its scale.
bool alone(const FormatCase& item) { return item.quantizer->config["group_size"] == Value(1); }

TEST(Formats, EveryCodeRoundTrips) {
  size_t formats = 0;
  for (const FormatCase& item : test::small_cases(widest)) {
    if (item.stochastic() || alone(item)) continue;
    const Held held(item);
    const std::vector<float>& values = held.codes();
    std::vector<float> scaled = values;
    for (float& value : scaled) {
      if (held.is_unused(value)) value = 0;
      if (std::isfinite(value)) value *= held.factor();  // the product would quiet a NaN
    }
    const auto back = held.encode(scaled);
    size_t wrong = 0;
    for (uint32_t code = 0; code < values.size(); ++code) {
      if (held.is_unused(values[code]) || back[code] == code) continue;
      // Where codes share a value (no hidden bit; levels that cancel), encoding settles on one.
      const bool repeated =
          std::bit_cast<uint32_t>(values[back[code]]) == std::bit_cast<uint32_t>(values[code]) &&
          back[back[code]] == back[code];
      if (!repeated && wrong++ == 0)
        ADD_FAILURE() << item.text() << " code " << code << " = " << values[code] << " becomes "
                      << back[code];
    }
    ++formats;
  }
  EXPECT_GT(formats, test::sanitized ? 1000u : 2000u);
}

// Every value of the format, every middle between two, and the numbers next to the middles.
std::vector<float> critical_points(const std::vector<float>& numbers) {
  std::vector<float> x = {-infinity, std::numeric_limits<float>::lowest(), 0x1p-149f, 0, -0.0f};
  for (size_t i = 0; i < numbers.size(); ++i) {
    x.push_back(numbers[i]);
    if (i + 1 == numbers.size()) break;
    const auto middle = static_cast<float>((static_cast<double>(numbers[i]) + numbers[i + 1]) / 2);
    x.insert(x.end(),
             {std::nextafter(middle, numbers[i]), middle, std::nextafter(middle, numbers[i + 1])});
  }
  x.push_back(std::numeric_limits<float>::max());
  x.push_back(infinity);
  std::sort(x.begin(), x.end());
  return x;
}

void expect_nearest(const FormatCase& item, const std::vector<float>& numbers,
                    const std::vector<float>& x, const std::vector<float>& y) {
  for (size_t i = 0; i < x.size(); ++i) {
    if (!std::isfinite(x[i]) || !std::isfinite(y[i])) continue;
    const auto above = std::lower_bound(numbers.begin(), numbers.end(), x[i]);
    double best = std::numeric_limits<double>::infinity();
    if (above != numbers.end()) best = std::min(best, static_cast<double>(*above) - x[i]);
    if (above != numbers.begin()) best = std::min(best, static_cast<double>(x[i]) - above[-1]);
    if (std::fabs(static_cast<double>(y[i]) - x[i]) > best) {
      ADD_FAILURE() << item.text() << " x=" << x[i] << " becomes " << y[i] << ", but a distance of "
                    << best << " is possible";
      return;
    }
  }
}

TEST(Formats, SmallOnesAreNearestMonotoneAndIdempotentEverywhere) {
  size_t formats = 0;
  for (const FormatCase& item : test::small_cases(all_values_up_to)) {
    if (item.format == "binary" && !item.quantizer->elementwise) continue;  // its scale is a mean
    if (alone(item)) continue;
    const Held held(item);
    const std::vector<float> numbers = held.numbers();
    std::vector<float> x = critical_points(numbers);
    // In a block, what lies beyond its largest number would change the scale.
    if (!item.quantizer->elementwise)
      std::erase_if(x, [&](float v) {
        return std::isfinite(v) && (v > numbers.back() || v < numbers.front());
      });
    const std::vector<float> y = held.quantize(x);
    if (item.nearest()) expect_nearest(item, numbers, x, y);
    if (!item.stochastic() && !item.wraps()) {
      EXPECT_TRUE(std::is_sorted(y.begin(), y.end())) << item.text();
    }
    const std::vector<float> again = held.quantize(y);
    for (size_t i = 0; i < y.size(); ++i)
      if (!same(again[i], y[i])) {
        ADD_FAILURE() << item.text() << ": " << y[i] << " becomes " << again[i];
        break;
      }
    ++formats;
  }
  EXPECT_GT(formats, test::sanitized ? 500u : 1000u);
}

TEST(Formats, WideOnesAreNearestAndMonotone) {
  for (const FormatCase& item : test::small_cases(widest)) {
    if (!item.quantizer->elementwise || item.quantizer->code_bits <= all_values_up_to) continue;
    if (item.stochastic()) continue;
    const std::vector<float> numbers = representable_values(*item.quantizer);
    std::vector<float> x = normal_numbers(500, 6);
    Random random(5, "bits");
    for (int i = 0; i < 500; ++i) x.push_back(std::bit_cast<float>(random.next_word()));
    std::erase_if(x, [](float v) { return std::isnan(v); });
    std::sort(x.begin(), x.end());
    const auto y = quantized(*item.quantizer, x, {static_cast<int64_t>(x.size())});
    if (item.nearest()) expect_nearest(item, numbers, x, y);
    if (!item.wraps()) {
      EXPECT_TRUE(std::is_sorted(y.begin(), y.end())) << item.text();
    }
  }
}

TEST(Formats, TiesGoToTheEvenCode) {
  size_t ties = 0;
  for (const FormatCase& item : test::small_cases(all_values_up_to)) {
    if (!item.quantizer->elementwise || !item.has("rounding", "nearest_even")) continue;
    // Without a hidden bit codes are not in the order of values.
    if (!item.nearest() || item.format == "minifloat_denorm") continue;
    const std::vector<float> numbers = representable_values(*item.quantizer);
    // Powers of two have no last bit that could be even: there a tie goes up.
    const bool powers = std::all_of(numbers.begin(), numbers.end(), [](float value) {
      int exponent = 0;
      return value <= 0 || std::frexp(value, &exponent) == 0.5f;
    });
    if (powers) continue;
    for (size_t i = 0; i + 1 < numbers.size(); ++i) {
      const auto middle = (static_cast<double>(numbers[i]) + numbers[i + 1]) / 2;
      const auto x = static_cast<float>(middle);
      if (x != middle) continue;
      EXPECT_EQ(item.quantizer->encode(&x, {1}).codes[0] % 2, 0u) << item.text() << " " << x;
      ++ties;
    }
  }
  EXPECT_GT(ties, test::sanitized ? 2000u : 10000u);
}

TEST(Formats, QuantisingATensorTwiceChangesNothing) {
  for (const FormatCase& item : test::some_cases()) {
    if (item.format == "truncated") continue;  // rounds twice: what is left is rounded again
    if (item.by_reference() || item.quantizer->learned) continue;
    const bool mean_of_half = item.format == "binary" && !item.quantizer->elementwise &&
                              !(item.quantizer->config["symmetric"] == Value(true));
    if (mean_of_half || item.stochastic()) continue;  // zeros halve the mean
    for (const Shape& shape : {Shape{4096}, Shape{64, 64}, Shape{4, 16, 8, 8}}) {
      const auto once = quantized(*item.quantizer, normal_numbers(4096, 3), shape);
      const auto twice = quantized(*item.quantizer, once, shape);
      size_t wrong = 0;
      for (size_t i = 0; i < once.size(); ++i)
        if (!same(once[i], twice[i]) && wrong++ == 0)
          ADD_FAILURE() << item.text() << " " << once[i] << " becomes " << twice[i];
    }
  }
}

TEST(Formats, DecodingGivesWhatQuantisingGives) {
  for (const FormatCase& item : test::some_cases()) {
    const Quantizer& q = *item.quantizer;
    if (!q.code_bits || item.stochastic()) continue;
    for (const Shape& shape :
         {Shape{1024}, Shape{24, 40}, Shape{2, 3, 6, 8}, Shape{7, 0}, Shape{}}) {
      const auto x = normal_numbers(static_cast<size_t>(element_count(shape)), 9);
      const auto codes = q.encode(x.data(), shape);
      std::vector<float> y(x.size());
      q.decode(codes, y.data(), shape);
      EXPECT_EQ(y, quantized(q, x, shape)) << item.text() << shape_text(shape);
      const auto packed = pack_codes(codes.codes, q.code_bits);
      EXPECT_EQ(packed.size(), (x.size() * static_cast<size_t>(q.code_bits) + 7) / 8);
      EXPECT_EQ(unpack_codes(packed, q.code_bits, x.size()), codes.codes) << item.text();
    }
  }
}

TEST(Formats, EveryOneHasCodes) {
  // These hold what QONNX's arithmetic gives, which need not be the value of a code.
  for (const FormatCase& item : test::one_case_each())
    if (item.format != "scaled_float" && item.format != "truncated") {
      EXPECT_GT(item.quantizer->code_bits, 0) << item.text();
    }
}

TEST(Formats, ZeroNanAndInfinity) {
  for (const FormatCase& item : test::some_cases()) {
    if (item.format == "truncated") continue;  // its zero is what is left of the zero point
    if (item.by_reference()) continue;
    const Quantizer& q = *item.quantizer;
    const auto y = quantized(q, {0, std::nanf(""), infinity, -infinity, 1}, {5});
    const bool no_zero =
        item.format == "binary" || item.format == "binary_residual" || item.format == "bipolar";
    if (!no_zero) {
      EXPECT_EQ(y[0], 0) << item.text();
    }
    EXPECT_TRUE(std::isnan(y[1])) << item.text();
    if (item.quantizer->config["saturation"] == Value(false)) continue;  // infinity is NaN there
    EXPECT_FALSE(std::isnan(y[2])) << item.text();
    // An infinity alone in its block has nothing to be scaled by.
    if (q.elementwise && !item.wraps()) {
      EXPECT_GE(y[2], y[4]) << item.text();
    }
    EXPECT_LE(y[3], y[0]) << item.text();
    EXPECT_FALSE(std::isnan(y[4])) << item.text();
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
  EXPECT_EQ(bits("binary", {}, {4, 32}), 2);
  EXPECT_EQ(bits("ternary", {{"scaling_factor", true}}, {4, 32}), 3);
  EXPECT_EQ(bits("ternary", {}, {4, 32}), 2);
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

}  // namespace
}  // namespace mase::properties_test
