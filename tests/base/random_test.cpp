// SPDX-License-Identifier: Apache-2.0
// Random numbers: the published answers of Philox4x32-10, streams, and what the draws look like.
#include "mase/base/random.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "support/support.h"

namespace mase::random_test {
namespace {

using Words = std::array<uint32_t, 4>;

// From the known-answer file of the authors' Random123 library.
TEST(Random, PhiloxKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, StreamsAreNamedBySeedPurposeAndIndex) {
  const auto draw = [](uint64_t seed, const char* purpose, uint64_t index) {
    Random random(seed, purpose, index);
    return std::pair(random.next_word(), random.next_word());
  };
  EXPECT_EQ(draw(1, "shuffle", 2), draw(1, "shuffle", 2));
  EXPECT_NE(draw(1, "shuffle", 2), draw(2, "shuffle", 2));
  EXPECT_NE(draw(1, "shuffle", 2), draw(1, "dropout", 2));
  EXPECT_NE(draw(1, "shuffle", 2), draw(1, "shuffle", 3));
}

TEST(Random, SeekingContinuesExactly) {
  Random straight(5, "x");
  std::vector<uint32_t> words;
  for (int i = 0; i < 37; ++i) words.push_back(straight.next_word());
  for (uint64_t start : {0u, 1u, 3u, 4u, 5u, 30u}) {
    Random resumed(5, "x");
    resumed.seek(start);
    for (size_t i = start; i < words.size(); ++i) EXPECT_EQ(resumed.next_word(), words[i]);
    EXPECT_EQ(resumed.position(), words.size());
  }
}

TEST(Random, DrawsHaveTheRightMoments) {
  Random random(0, "moments");
  double sum = 0, squares = 0, normal = 0, normal_squares = 0;
  constexpr int count = 100000;
  for (int i = 0; i < count; ++i) {
    const double u = random.uniform();
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    squares += u * u;
    const double n = random.normal();
    normal += n;
    normal_squares += n * n;
    const float f = random.uniform_float();
    ASSERT_GE(f, 0.0f);
    ASSERT_LT(f, 1.0f);
  }
  EXPECT_NEAR(sum / count, 0.5, 0.005);
  EXPECT_NEAR(squares / count, 1.0 / 3, 0.005);
  EXPECT_NEAR(normal / count, 0, 0.015);
  EXPECT_NEAR(normal_squares / count, 1, 0.02);
}

TEST(Random, BelowIsInRangeAndEven) {
  Random random(0, "below");
  std::vector<int> hits(7);
  for (int i = 0; i < 70000; ++i) ++hits[random.below(7)];
  for (const int hit : hits) EXPECT_NEAR(hit, 10000, 500);
  EXPECT_EQ(random.below(1), 0u);
}

TEST(Random, PermutationsHoldEveryNumberOnce) {
  Random random(3, "permutation");
  const std::vector<uint32_t> order = random.permutation(1000);
  EXPECT_EQ(std::set<uint32_t>(order.begin(), order.end()).size(), 1000u);
  EXPECT_FALSE(std::is_sorted(order.begin(), order.end()));
  EXPECT_TRUE(random.permutation(0).empty());
  EXPECT_EQ(random.permutation(1), std::vector<uint32_t>{0});
}

}  // namespace
}  // namespace mase::random_test
