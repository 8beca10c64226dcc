// SPDX-License-Identifier: Apache-2.0
// The vector kernels equal the scalar reference bit for bit: on random bit patterns (every exponent
// as likely as any other, subnormals, infinities and NaN included), on ordinary numbers, for every
// instruction set this machine has, and for all codes. MASE_LONG_TESTS=1 takes 10^8 patterns for
// every registered format instead of 10^5.
#include <hwy/targets.h>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "formats/every_format.h"
#include "mase/base/random.h"
#include "mase/formats/kernels/codes.h"
#include "mase/formats/packing.h"

namespace mase::kernels_test {
namespace {

using test::FormatCase;

constexpr size_t chunk = 8192 + 13;
constexpr float infinity = std::numeric_limits<float>::infinity();
constexpr float hostile[] = {0.0f,
                             -0.0f,
                             infinity,
                             -infinity,
                             std::numeric_limits<float>::quiet_NaN(),
                             0x1p-149f,
                             -0x1p-149f,
                             0x1p-126f,
                             0x1.fffffcp-127f,
                             0x1.fffffep127f,
                             -0x1.fffffep127f,
                             0.5f,
                             -0.5f,
                             1.5f,
                             -2.5f};

std::vector<float> patterns(size_t count, uint64_t seed) {
  Random random(seed, "patterns");
  std::vector<float> x(count);
  for (float& value : x) value = std::bit_cast<float>(random.next_word());
  for (size_t i = 0; i < std::size(hostile) && i < count; ++i) x[i * 7 % count] = hostile[i];
  return x;
}

std::vector<float> ordinary(size_t count, uint64_t seed) {
  Random random(seed, "ordinary");
  std::vector<float> x(count);
  for (float& value : x) value = static_cast<float>(random.normal() * std::exp(random.normal()));
  return x;
}

bool same(float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }

// To the bit, the sign of zero included.
bool same_bits(float a, float b) {
  return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

bool agrees(const FormatCase& item, const std::vector<float>& x, const Shape& shape) {
  std::vector<float> vector(x.size()), scalar(x.size());
  item.quantizer->quantize(x.data(), vector.data(), shape);
  item.quantizer->reference(x.data(), scalar.data(), shape);
  for (size_t i = 0; i < x.size(); ++i)
    if (!same_bits(vector[i], scalar[i])) {
      ADD_FAILURE() << item.text() << " x=" << x[i] << " vector=" << vector[i]
                    << " scalar=" << scalar[i] << " at " << i << " of " << shape_text(shape);
      return false;
    }
  // In place, as the engine does.
  std::vector<float> own = x;
  item.quantizer->quantize(own.data(), own.data(), shape);
  return std::equal(own.begin(), own.end(), vector.begin(), same_bits);
}

TEST(FormatKernels, EqualTheReferenceForEveryKey) {
  const Shape shapes[] = {{static_cast<int64_t>(chunk)}, {5, 1641}, {3, 5, 547}};
  std::vector<std::vector<float>> inputs;
  for (uint64_t seed = 0; seed < 3; ++seed) {
    inputs.push_back(patterns(chunk, seed));
    inputs.push_back(ordinary(chunk, seed));
  }
  for (const FormatCase& item : test::some_cases())
    for (size_t i = 0; i < inputs.size(); ++i)
      EXPECT_TRUE(agrees(item, inputs[i], shapes[i / 2])) << item.text();
}

TEST(FormatKernels, EqualTheReferenceOnManyPatterns) {
  const size_t rounds = std::getenv("MASE_LONG_TESTS") ? 100000000 / chunk + 1 : 12;
  const std::vector<FormatCase> cases = test::one_case_each();
  for (size_t round = 0; round < rounds; ++round) {
    const std::vector<float> x = patterns(chunk, 1000 + round);
    for (const FormatCase& item : cases)
      ASSERT_TRUE(agrees(item, x, round % 2 ? Shape{5, 1641} : Shape{static_cast<int64_t>(chunk)}));
  }
}

// Sizes from which results are written around the caches.
TEST(FormatKernels, EqualTheReferenceOnLargeArrays) {
  const size_t count = (size_t{1} << 21) + 64 * 3;
  std::vector<float> x = ordinary(4099, 1);
  Tensor in({static_cast<int64_t>(count / 64), 64}), out(in.shape()), plain(in.shape());
  for (size_t i = 0; i < count; ++i) in.mutable_data<float>()[i] = x[i % x.size()];
  for (const FormatCase& item : test::one_case_each()) {
    item.quantizer->quantize(in.data<float>(), out.mutable_data<float>(), in.shape());
    item.quantizer->reference(in.data<float>(), plain.mutable_data<float>(), in.shape());
    EXPECT_TRUE(std::equal(out.data<float>(), out.data<float>() + count, plain.data<float>()))
        << item.text();
  }
}

// Where single precision cannot tell which code is nearer: at the middles of a scale that is no
// power of two, and beside them.
TEST(FormatKernels, ScaledTiesAreDecidedInDoublePrecision) {
  Random random(4, "scales");
  for (const int width : {2, 4, 8, 12, 16, 20})
    for (const char* granularity : {"row", "tensor"}) {
      const auto quantizer =
          make_quantizer("scale_integer", Dict{{"width", width}, {"granularity", granularity}});
      const FormatCase item{"scale_integer", quantizer->config, quantizer};
      const double largest_code = std::ldexp(1.0, width - 1) - 1;
      for (int round = 0; round < 40; ++round) {
        std::vector<float> x(2 * 96);
        for (size_t row = 0; row < 2; ++row) {
          float* at = x.data() + 96 * row;
          at[0] = static_cast<float>(random.uniform(0.1, 10));
          for (size_t i = 1; i < 96; i += 3) {
            const double k = std::floor(random.uniform(-largest_code, largest_code)) + 0.5;
            at[i] = static_cast<float>(k * (at[0] / largest_code));
            if (i + 2 < 96) at[i + 1] = std::nextafter(at[i], infinity);
            if (i + 2 < 96) at[i + 2] = std::nextafter(at[i], -infinity);
          }
        }
        ASSERT_TRUE(agrees(item, x, {2, 96}));
      }
    }
}

TEST(FormatKernels, EveryInstructionSetGivesTheSame) {
  const std::vector<float> x = patterns(chunk, 5), y = ordinary(chunk, 6);
  const std::vector<FormatCase> cases = test::some_cases();
  const int64_t all = hwy::SupportedTargets();
  for (int64_t left = all; left; left &= left - 1) {
    hwy::GetChosenTarget().Update(left & -left);
    for (const FormatCase& item : cases)
      for (const auto& input : {x, y}) EXPECT_TRUE(agrees(item, input, {5, 1641}));
  }
  hwy::GetChosenTarget().Update(all);
}

// All codes of at most 16 bits (more of them by chance), and the values that belong to them.
void expect_same_codes(const CodeLayout& layout) {
  const int bits = layout.width;
  std::vector<uint32_t> codes;
  Random random(static_cast<uint64_t>(bits), "codes");
  if (bits <= 12)
    for (uint32_t code = 0; code < 1u << bits; ++code) codes.push_back(code);
  else
    for (int i = 0; i < 4096 + 5; ++i)
      codes.push_back(random.next_word() & static_cast<uint32_t>((uint64_t{1} << bits) - 1));
  std::vector<float> values(codes.size());
  decode_kernel(layout, codes.data(), values.data(), codes.size());
  std::vector<uint32_t> back(codes.size());
  encode_kernel(layout, values.data(), back.data(), codes.size());
  for (size_t i = 0; i < codes.size(); ++i) {
    const float value = value_of(layout, codes[i]);
    if (std::bit_cast<uint32_t>(values[i]) != std::bit_cast<uint32_t>(value) ||
        back[i] != code_of(layout, value)) {
      ADD_FAILURE() << "kind " << static_cast<int>(layout.kind) << " width " << bits << " mantissa "
                    << layout.mantissa << " bias " << layout.bias << " code " << codes[i] << ": "
                    << values[i] << " and " << value << ", back " << back[i];
      return;
    }
  }
}

TEST(FormatKernels, CodesEqualTheReference) {
  using Kind = CodeLayout::Kind;
  for (int width = 1; width <= 32; ++width) {
    for (const bool is_signed : {true, false})
      for (const float scale : {1.0f, 0x1p-90f, 0x1p126f, 16.0f})
        expect_same_codes({.width = width, .is_signed = is_signed, .scale = scale});
    if (width >= 2 && width <= 23)
      expect_same_codes({.kind = Kind::sign_magnitude, .width = width});
    for (int exponent = 1; exponent <= 8 && exponent < width; ++exponent) {
      const int mantissa = width - 1 - exponent;
      for (const int bias : {-100, -4, 0, 7, 20, 126, 127, 128, 140}) {
        const int top = (1 << exponent) - 1 - bias;
        if (mantissa > 23 || top > 127 || 1 - bias - mantissa < -149) continue;
        CodeLayout layout{
            .kind = Kind::floating, .width = width, .mantissa = mantissa, .bias = bias};
        for (const Specials specials : {Specials::none, Specials::nan, Specials::ieee}) {
          layout.specials = specials;
          if (specials != Specials::ieee || mantissa > 0) expect_same_codes(layout);
        }
        if (mantissa == 0 && bias <= 148)
          expect_same_codes({.kind = Kind::power, .width = width, .bias = bias});
        if (mantissa > 0 && -bias - mantissa >= -149)
          expect_same_codes(
              {.kind = Kind::explicit_one, .width = width, .mantissa = mantissa, .bias = bias});
      }
    }
  }
}

TEST(FormatKernels, EncodedAndDecodedPatternsAreTheQuantisedOnes) {
  const std::vector<float> x = patterns(chunk, 21);
  for (const FormatCase& item : test::some_cases()) {
    const Quantizer& q = *item.quantizer;
    if (!q.code_bits || item.stochastic()) continue;
    std::vector<float> y(chunk), decoded(chunk);
    const Shape shape = {5, 1641};
    q.quantize(x.data(), y.data(), shape);
    const Quantizer::Codes codes = q.encode(x.data(), shape);
    q.decode(codes, decoded.data(), shape);
    size_t wrong = 0;
    for (size_t i = 0; i < chunk; ++i)  // NaN has no code of its own everywhere
      if (!same(y[i], decoded[i]) && !std::isnan(x[i]) && wrong++ == 0)
        ADD_FAILURE() << item.text() << " x=" << x[i] << " quantised " << y[i] << " decoded "
                      << decoded[i];
  }
}

TEST(Packing, CodesTakeAsManyBitsAsTheyHave) {
  Random random(3, "packing");
  for (int bits = 1; bits <= 32; ++bits)
    for (const size_t count : {0, 1, 3, 7, 8, 9, 64, 1001}) {
      std::vector<uint32_t> codes(count);
      for (uint32_t& code : codes)
        code = random.next_word() & static_cast<uint32_t>((uint64_t{1} << bits) - 1);
      const auto bytes = pack_codes(codes, bits);
      EXPECT_EQ(bytes.size(), (count * static_cast<size_t>(bits) + 7) / 8);
      EXPECT_EQ(unpack_codes(bytes, bits, count), codes) << bits;
      for (size_t i = 0; i < count * static_cast<size_t>(bits); ++i) {
        const bool bit = (std::to_integer<unsigned>(bytes[i / 8]) >> (i % 8)) & 1;
        const auto width = static_cast<size_t>(bits);
        ASSERT_EQ(bit, static_cast<bool>(codes[i / width] >> (i % width) & 1));
      }
    }
}

TEST(Formats, HalfAndBfloat16AreTheStandardConversions) {
  const auto half = make_quantizer("half", Dict{{"overflow", "infinity"}});
  const auto brain = make_quantizer("bfloat16", Dict{{"overflow", "infinity"}});
  const auto x = patterns(100000, 1);
  std::vector<float> h(x.size()), b(x.size());
  half->quantize(x.data(), h.data(), {100000});
  brain->quantize(x.data(), b.data(), {100000});
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(same(h[i], half_to_float(float_to_half(x[i])))) << x[i];
    ASSERT_TRUE(same(b[i], bfloat16_to_float(float_to_bfloat16(x[i])))) << x[i];
  }
}

}  // namespace
}  // namespace mase::kernels_test
