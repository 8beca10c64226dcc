// SPDX-License-Identifier: Apache-2.0
// Products in double precision against plain loops: every form of operand and edge, with one thread
// and several, and nothing written beside the result.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "engine/instruction_sets.h"
#include "mase/base/random.h"
#include "mase/engine/kernels/double_products.h"

namespace mase::kernels::double_products_test {
namespace {

void compare_with_plain_loops() {
  Random random(7, "double_products");
  for (int trial = 0; trial < 60; ++trial) {
    DoubleProduct p;
    p.rows = 1 + static_cast<int64_t>(random.below(trial % 5 == 0 ? 420 : 40));
    p.columns = 1 + static_cast<int64_t>(random.below(trial % 5 == 1 ? 800 : 60));
    p.inner = static_cast<int64_t>(random.below(trial % 3 == 0 ? 400 : 20));
    p.accumulate = trial % 2 == 0;
    p.upper = trial % 7 == 3;
    p.factor = trial % 4 == 0 ? -1.5 : 1;
    const auto as = static_cast<size_t>(p.rows * p.inner),
               bs = static_cast<size_t>(p.inner * p.columns);
    std::vector<double> a(as + 1), b(bs + 1);
    std::vector<float> single(as + 1);
    for (double& value : a) value = random.normal();
    for (double& value : b) value = random.normal();
    for (float& value : single) value = static_cast<float>(random.normal());
    // Something that is no number, or very large, must come out where plain loops have it.
    if (trial % 11 == 5) a[0] = std::numeric_limits<double>::infinity();
    if (trial % 11 == 6) b[0] = std::nan("");
    if (trial % 11 == 7) a[0] = 1e300;
    const bool a_turned = random.below(2), b_turned = random.below(2), floats = random.below(2);
    p.a.row = a_turned ? 1 : p.inner;
    p.a.column = a_turned ? p.rows : 1;
    if (floats)
      p.a.floats = single.data();
    else
      p.a.doubles = a.data();
    p.b = {.doubles = b.data(),
           .row = b_turned ? 1 : p.columns,
           .column = b_turned ? std::max<int64_t>(1, p.inner) : 1};
    p.out_row = p.columns + 3;
    std::vector<double> start(static_cast<size_t>(p.rows * p.out_row));
    for (double& value : start) value = random.normal();
    std::vector<double> wanted = start, found = start, threaded = start;
    p.out = wanted.data();
    reference::multiply_doubles(p);
    p.out = found.data();
    multiply_doubles(p, 1);
    p.out = threaded.data();
    multiply_doubles(p, 3);
    for (int64_t i = 0; i < p.rows; ++i)
      for (int64_t j = 0; j < p.out_row; ++j) {
        const auto at = static_cast<size_t>(i * p.out_row + j);
        if (j >= p.columns) {
          ASSERT_EQ(found[at], start[at]) << trial;
          continue;
        }
        if (p.upper && j < i) continue;
        if (std::isfinite(wanted[at])) {
          ASSERT_NEAR(found[at], wanted[at], 1e-10 * (1 + std::fabs(wanted[at]))) << trial;
          ASSERT_EQ(found[at], threaded[at]) << trial;
        } else {
          ASSERT_FALSE(std::isfinite(found[at])) << trial;
        }
      }
  }
}

TEST(DoubleProducts, AreThoseOfPlainLoops) { with_every_instruction_set(compare_with_plain_loops); }

}  // namespace
}  // namespace mase::kernels::double_products_test
