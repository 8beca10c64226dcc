// SPDX-License-Identifier: Apache-2.0
// The order in which an epoch takes its rows.
#pragma once

#include <cstdint>
#include <vector>

namespace mase {

// Labels (empty: the data has none) lie in that order too: picked one by one they cost a cache miss
// each, like a whole sample.
struct EpochOrder {
  std::vector<uint32_t> rows;
  std::vector<int32_t> labels;
};

// A function of seed and epoch alone: a resumed run finds the same order.
void shuffle_rows(EpochOrder& order, const int32_t* labels, uint64_t seed, int64_t epoch);

}  // namespace mase
