// SPDX-License-Identifier: Apache-2.0
// Portable instructions, once chosen, stay chosen whatever is asked afterwards: in a program of its
// own, since the choice is for all that follows.
#include <hwy/highway.h>

#include "mase/engine/kernels/instruction_set.h"
#include "mase/engine/kernels/integer_dot.h"
#include "support/support.h"

namespace mase::portable_test {
namespace {

TEST(Portable, StaysChosen) {
#if defined(__x86_64__)
  use_portable_instructions();
  const auto chosen = hwy::GetChosenTarget().GetIndex();
  if (!test::sanitized) {  // where kernels are compiled for one set only
    EXPECT_EQ(instruction_set(), "SSE4");
  }
  EXPECT_FALSE(kernels::has_integer_dot());
  EXPECT_EQ(hwy::GetChosenTarget().GetIndex(), chosen);
  EXPECT_EQ(enabled_targets(), HWY_SSE4);
#else
  GTEST_SKIP() << "this is no x86-64";
#endif
}

}  // namespace
}  // namespace mase::portable_test
