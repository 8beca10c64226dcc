// SPDX-License-Identifier: Apache-2.0
// Two graphs with the same weights, bit for bit.
#pragma once

#include <gtest/gtest.h>

#include "mase/ir/graph.h"

namespace mase::test {

inline void expect_same_bits(const Graph& a, const Graph& b) {
  const TensorTable first = state_dict(a), second = state_dict(b);
  ASSERT_EQ(first.size(), second.size());
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(first[i].first, second[i].first);
    EXPECT_TRUE(first[i].second.same_bits(second[i].second)) << first[i].first;
  }
}

}  // namespace mase::test
