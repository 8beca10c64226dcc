// SPDX-License-Identifier: Apache-2.0
// Words of many counters at once are philox's to the bit, and dropping by them is its plain twin's.
#include <cmath>
#include <cstring>

#include "mase/base/random.h"
#include "mase/engine/kernels/dropout.h"
#include "support/support.h"

namespace mase::kernels::dropout_words_test {
namespace {

TEST(DropoutWords, AreThoseOfPhilox) {
  for (const uint32_t first : {0u, 5u, 0xFFFFFFF0u})  // counters may wrap
    for (const int64_t count : {0, 1, 3, 4, 7, 8, 15, 16, 17, 33, 100}) {
      const WordStream stream{{first ^ 7u, 0xFFFFFFFFu, 3u}, {0xDEADBEEFu, first}};
      // One word more: nothing may be written there.
      std::vector<uint32_t> fast(static_cast<size_t>(4 * count) + 1, 9u), plain = fast;
      stream_words(stream, first, count, fast.data());
      reference::stream_words(stream, first, count, plain.data());
      EXPECT_EQ(fast, plain) << first << " " << count;
      if (count == 0) continue;
      const auto words = philox({first, first ^ 7u, 0xFFFFFFFFu, 3u}, stream.key);
      EXPECT_TRUE(std::equal(words.begin(), words.end(), fast.begin()));
    }
}

TEST(DropoutWords, DropAsThePlainLoopDoes) {
  const float hostile[] = {NAN, INFINITY, -INFINITY, -0.0f, 1e-45f, 3.4e38f, 1.5f};
  Random random(2, "drop");
  for (const int64_t n : {1, 7, 8, 16, 31, 100})
    for (const uint32_t threshold : {0u, 1u, 0x7FFFFFFFu, 0x80000000u, 0x80000001u, 0xFFFFFFFFu})
      for (const bool accumulate : {false, true}) {
        std::vector<float> x(static_cast<size_t>(n)), fast(x.size() + 1, 0.25f);
        std::vector<uint32_t> words(x.size());
        for (size_t i = 0; i < x.size(); ++i) {
          x[i] = hostile[random.below(std::size(hostile))];
          const uint32_t edges[] = {0u, threshold, threshold - 1, 0xFFFFFFFFu};
          words[i] = edges[random.below(4)];
        }
        std::vector<float> plain = fast;
        drop(x.data(), fast.data(), n, words.data(), threshold, 1.25f, accumulate);
        reference::drop(x.data(), plain.data(), n, words.data(), threshold, 1.25f, accumulate);
        EXPECT_EQ(std::memcmp(fast.data(), plain.data(), fast.size() * sizeof(float)), 0)
            << n << " " << threshold;
      }
}

}  // namespace
}  // namespace mase::kernels::dropout_words_test
