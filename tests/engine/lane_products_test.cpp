// SPDX-License-Identifier: Apache-2.0
// Products of matrices of lanes against their plain twin: edges of tiles, numbers for all lanes,
// sums that go on, and hostile values, which stay in their lane.
#include "mase/engine/kernels/lane_products.h"

#include <cmath>

#include "mase/base/random.h"
#include "support/support.h"

namespace mase::kernels::lane_products_test {
namespace {

TEST(LaneProducts, MatchTheirReference) {
  Random random(4, "lane products");
  const auto numbers = [&](int64_t count) {
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = static_cast<float>(random.uniform(-1, 1));
    return values;
  };
  for (const int64_t rows : {1, 3, 4, 5, 9})
    for (const int64_t columns : {1, 4, 6})
      for (const int64_t terms : {0, 1, 7})
        for (const int64_t lanes : {1, 7, 16, 33})
          for (const int scalar : {0, 1, 2})  // neither, a, b
            for (const bool accumulate : {false, true}) {
              const int64_t stride = (lanes + 15) / 16 * 16;
              const auto matrix = [&](int64_t width, bool one) {
                return one ? LaneMatrix{width, 1, true} : LaneMatrix{width * stride, stride, false};
              };
              const LaneProduct shape{rows,
                                      columns,
                                      terms,
                                      matrix(terms, scalar == 1),
                                      matrix(columns, scalar == 2),
                                      matrix(columns, false),
                                      lanes,
                                      true};
              std::vector<float> a = numbers(rows * terms * stride + 1);
              const std::vector<float> b = numbers(terms * columns * stride + 1);
              a[random.below(a.size())] = random.below(2) ? NAN : INFINITY;
              std::vector<float> fast = numbers(rows * columns * stride), plain = fast;
              lane_product(shape, a.data(), b.data(), fast.data(), accumulate);
              reference::lane_product(shape, a.data(), b.data(), plain.data(), accumulate);
              for (int64_t i = 0; i < rows * columns; ++i)
                for (int64_t lane = 0; lane < lanes; ++lane) {
                  const float got = fast[static_cast<size_t>(i * stride + lane)],
                              wanted = plain[static_cast<size_t>(i * stride + lane)];
                  ASSERT_TRUE(got == wanted || (std::isnan(got) && std::isnan(wanted)) ||
                              std::abs(got - wanted) < 1e-5)
                      << got << " " << wanted << ", " << rows << " x " << terms << " x " << columns
                      << ", lane " << lane << " of " << lanes;
                }
            }
}

}  // namespace
}  // namespace mase::kernels::lane_products_test
