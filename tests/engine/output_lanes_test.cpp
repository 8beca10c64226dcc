// SPDX-License-Identifier: Apache-2.0
// Sums with outputs as lanes: near the plain loops, and the bits of the sums along the rows; a
// whole network on few samples has the bits it has on many, with every set of instructions.
#include "mase/engine/kernels/output_lanes.h"

#include <cmath>
#include <cstring>

#include "mase/base/random.h"
#include "mase/engine/kernels/kernels.h"
#include "support/support.h"

namespace mase::kernels::output_lanes_test {
namespace {

std::vector<float> numbers(Random& random, int64_t count, bool hostile = false) {
  const float values[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 3.4e38f, 1e-45f};
  std::vector<float> result(static_cast<size_t>(count));
  for (float& value : result)
    value = hostile && random.below(9) == 0 ? values[random.below(std::size(values))]
                                            : static_cast<float>(random.uniform(-1, 1));
  return result;
}

TEST(OutputLanes, HaveTheBitsOfSumsAlongTheRows) {
  Random random(3, "output lanes");
  for (const int64_t out : {16, 32, 48})
    for (const int64_t in : {1, 7, 150, 300})
      for (const int64_t n : {1, 2, 3, 4, 5, 6, 7, 10, 13, 14, 15, 28, 29, 49})
        for (const bool hostile : {false, true}) {
          const int64_t segments = 1 + static_cast<int64_t>(random.below(4)), step = n + 3;
          const int threads = 1 + static_cast<int>(random.below(2));
          std::vector<int64_t> offsets(static_cast<size_t>(in));
          for (int64_t& offset : offsets) offset = static_cast<int64_t>(random.below(50));
          const std::vector<float> x = numbers(random, 50 + segments * step, hostile),
                                   w = numbers(random, out * in, hostile),
                                   bias = numbers(random, out);
          const float* start = random.below(2) ? bias.data() : nullptr;
          const Finish finish{random.below(2) ? 0.0f : -INFINITY,
                              random.below(2) ? 6.0f : INFINITY};
          const int64_t lanes = segments * n;
          ShiftedShape shape{out, in, in, 1, offsets.data(), lanes, n, segments, step, n, threads};
          std::vector<float> packed(w.size());
          pack_outputs(w.data(), out, in, packed.data());
          // One value more: nothing may be written there.
          std::vector<float> fast(static_cast<size_t>(lanes * out) + 1, 7.0f), plain = fast,
                                                                               rows = fast;
          output_lanes(shape, packed.data(), start, x.data(), fast.data(), finish);
          reference::output_lanes(shape, packed.data(), start, x.data(), plain.data(), finish);
          shifted_linear(shape, w.data(), start, x.data(), rows.data(), finish, false);
          ASSERT_EQ(fast.back(), 7.0f);
          for (int64_t lane = 0; lane < lanes; ++lane)
            for (int64_t o = 0; o < out; ++o) {
              const float got = fast[static_cast<size_t>(lane * out + o)],
                          along = rows[static_cast<size_t>(o * lanes + lane)],
                          wanted = plain[static_cast<size_t>(lane * out + o)];
              ASSERT_TRUE(std::isnan(got) ? std::isnan(along)
                                          : std::memcmp(&got, &along, sizeof(got)) == 0)
                  << got << " " << along << ", " << out << " " << in << " " << n;
              if (hostile) continue;
              ASSERT_NEAR(got, wanted, 1e-4) << out << " " << in << " " << n;
            }
        }
}

}  // namespace
}  // namespace mase::kernels::output_lanes_test
