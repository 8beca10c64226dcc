// SPDX-License-Identifier: Apache-2.0
// Integer products against their plain twins, those of tile registers emulated where the machine
// has none: every size of tile, several pieces of a sum,
// segments, offsets, all extremes of codes; and values that are no codes are refused.
#include "mase/engine/kernels/integer_dot.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "mase/base/random.h"
#include "mase/engine/kernels/integer_rows.h"
#include "support/support.h"

namespace mase::kernels::integer_dot_test {
namespace {

int64_t draw(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
}

TEST(IntegerDot, MatchesItsReference) {
  Random random(3, "integers");
  for (int round = 0; round < 60; ++round) {
    ShiftedShape shape{};
    shape.out = round % 6 == 0 ? draw(random, 60, 90) : draw(random, 1, 15);
    shape.in = round % 5 == 0 ? draw(random, 250, 600) : draw(random, 1, 40);
    shape.n = draw(random, 1, 150);
    shape.segments = draw(random, 1, 3);
    shape.x_step = shape.n + draw(random, 0, 5);
    shape.y_step = shape.n + draw(random, 0, 3);
    shape.y_stride = shape.segments * shape.y_step + 2;
    shape.out_step = shape.in;
    shape.in_step = 1;
    shape.threads = round % 2 + 1;
    std::vector<int64_t> offsets;
    for (int64_t i = 0; i < shape.in; ++i) offsets.push_back(draw(random, 0, 99));
    shape.offsets = offsets.data();
    const auto words = [&](int64_t count) {
      std::vector<uint32_t> result(static_cast<size_t>(count));
      for (uint32_t& word : result)
        for (int r = 0; r < 4; ++r) {
          const uint32_t extremes[] = {0, 255, 128, 127};
          const uint64_t any = random.below(512);
          word = word << 8 | (any < 256 ? static_cast<uint32_t>(any) : extremes[any % 4]);
        }
      return result;
    };
    const auto x = words(100 + shape.segments * shape.x_step), w = words(shape.out * shape.in);
    std::vector<int32_t> start(static_cast<size_t>((shape.in / 256 + 1) * shape.out));
    for (int32_t& value : start) value = static_cast<int32_t>(draw(random, -9999, 9999));
    std::vector<float> bias(static_cast<size_t>(shape.out));
    for (float& value : bias) value = static_cast<float>(draw(random, -99, 99)) / 4;
    for (const bool biased : {false, true})
      for (const int kind : {0, 1, 2}) {
        const auto count = static_cast<size_t>(shape.out * shape.y_stride);
        std::vector<float> fast(count, 7.0f), plain = fast;  // what lies between stays
        std::vector<float> add(count);
        for (float& value : add) value = static_cast<float>(draw(random, -999, 999)) / 4;
        const Finish finish = kind == 2   ? Finish{.low = -300, .high = 200, .add = add.data()}
                              : kind == 1 ? Finish::relu(true)
                                          : Finish{};
        integer_linear(shape, w.data(), start.data(), 1.0f / 64, biased ? bias.data() : nullptr,
                       x.data(), fast.data(), finish);
        reference::integer_linear(shape, w.data(), start.data(), 1.0f / 64,
                                  biased ? bias.data() : nullptr, x.data(), plain.data(), finish);
        EXPECT_EQ(fast, plain) << round;
        for (IntegerSegment* tiles : {emulated_integer_tile_segment, integer_tile_segment}) {
          const bool emulated = tiles == emulated_integer_tile_segment;
          if (emulated ? round % 3 != 0 : !has_integer_tiles()) continue;
          fast.assign(count, 7.0f);
          integer_linear(shape, w.data(), start.data(), 1.0f / 64, biased ? bias.data() : nullptr,
                         x.data(), fast.data(), finish, tiles);
          EXPECT_EQ(fast, plain) << round << ", tiles";
        }
      }
  }
}

TEST(IntegerDot, PacksCodesAndNothingElse) {
  Random random(4, "codes");
  for (const int32_t offset : {0, 128})
    for (const int64_t rows : {1, 3, 4, 5, 8})
      for (const int64_t n : {1, 15, 16, 17, 40}) {
        Quads shape{rows, n + 3, n, 16.0f, offset, n + 1};
        std::vector<float> x(static_cast<size_t>(rows * shape.stride),
                             std::numeric_limits<float>::quiet_NaN());  // between the rows
        for (int64_t r = 0; r < rows; ++r)
          for (int64_t l = 0; l < n; ++l)
            x[static_cast<size_t>(r * shape.stride + l)] =
                static_cast<float>(draw(random, -offset, 255 - offset)) / 16;
        std::vector<uint32_t> fast(static_cast<size_t>((rows + 3) / 4 * shape.out_stride), 9),
            plain = fast;
        EXPECT_TRUE(pack_quads(shape, x.data(), fast.data()));
        EXPECT_TRUE(reference::pack_quads(shape, x.data(), plain.data()));
        EXPECT_EQ(fast, plain);
        for (const float bad :
             {NAN, INFINITY, -INFINITY, 1e30f, 1.0f / 32, static_cast<float>(256 - offset) / 16,
              static_cast<float>(-offset - 1) / 16}) {
          std::vector<float> spoilt = x;
          spoilt[static_cast<size_t>((rows - 1) * shape.stride + n - 1)] = bad;
          EXPECT_FALSE(pack_quads(shape, spoilt.data(), fast.data())) << bad;
          EXPECT_FALSE(reference::pack_quads(shape, spoilt.data(), plain.data())) << bad;
        }
      }
}

TEST(IntegerRows, MatchesItsReference) {
  Random random(5, "rows");
  for (int round = 0; round < 80; ++round) {
    const IntegerRows shape{draw(random, 1, 40),
                            round % 9 == 0 ? draw(random, 500, 1000) : draw(random, 1, 70),
                            draw(random, 1, 150)};
    std::vector<float> x(static_cast<size_t>(shape.rows * shape.in)),
        bias(static_cast<size_t>(shape.out));
    for (float& value : x) {
      const float extremes[] = {-128, 127, 0, -1};
      value =
          (round % 3 ? static_cast<float>(draw(random, -128, 127)) : extremes[draw(random, 0, 3)]) /
          16;
    }
    for (float& value : bias) value = static_cast<float>(draw(random, -99, 99)) / 4;
    const auto words = static_cast<size_t>(shape.rows * shape.words());
    std::vector<uint32_t> fast(words + 4), plain = fast;
    ASSERT_TRUE(pack_rows(shape.rows, shape.in, x.data(), 16.0f, fast.data()));
    ASSERT_TRUE(reference::pack_rows(shape.rows, shape.in, x.data(), 16.0f, plain.data()));
    fast.resize(words);
    plain.resize(words);
    ASSERT_EQ(fast, plain) << round;
    for (const float bad : {NAN, INFINITY, 1e30f, 1.0f / 32, 8.0f, -129.0f / 16}) {
      std::vector<float> spoilt = x;
      spoilt[static_cast<size_t>(draw(random, 0, shape.rows * shape.in - 1))] = bad;
      std::vector<uint32_t> out(words + 4);
      EXPECT_FALSE(pack_rows(shape.rows, shape.in, spoilt.data(), 16.0f, out.data())) << bad;
      EXPECT_FALSE(reference::pack_rows(shape.rows, shape.in, spoilt.data(), 16.0f, out.data()))
          << bad;
    }
    std::vector<uint32_t> w(static_cast<size_t>(shape.words() * shape.out));
    for (uint32_t& word : w)
      for (int b = 0; b < 4; ++b)
        word = word << 8 | (round % 2 ? static_cast<uint32_t>(draw(random, 0, 255)) : 0x80u);
    for (const bool biased : {false, true}) {
      const auto count = static_cast<size_t>(shape.rows * shape.out);
      std::vector<float> got(count + 1, 7.0f), wanted = got;  // nothing behind is written
      const float* own = biased ? bias.data() : nullptr;
      integer_rows(shape, plain.data(), w.data(), 1.0f / 64, own, got.data());
      reference::integer_rows(shape, plain.data(), w.data(), 1.0f / 64, own, wanted.data());
      EXPECT_EQ(got, wanted) << round;
    }
  }
}

}  // namespace
}  // namespace mase::kernels::integer_dot_test
