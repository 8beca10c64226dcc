// SPDX-License-Identifier: Apache-2.0
// The order in which an epoch takes its rows.
#pragma once

#include <cstdint>
#include <future>
#include <vector>

namespace mase {

// Labels (empty: the data has none) lie in that order too: picked one by one they cost a cache miss
// each, like a whole sample.
struct EpochOrder {
  std::vector<uint32_t> rows;
  std::vector<int32_t> labels;
};

// The orders of a run's epochs, each a function of seed and epoch alone: a resumed run finds the
// same. That of the next epoch is made meanwhile by a thread of its own, in memory that is there
// already.
class EpochOrders {
 public:
  // `labels`: one for each row, or null. They must outlive this.
  EpochOrders(int64_t rows, const int32_t* labels, uint64_t seed, int64_t epochs,
              bool keep_order = false);

  // Valid until the next call.
  const EpochOrder& of(int64_t epoch);

 private:
  void shuffle(EpochOrder& order, int64_t epoch) const;

  size_t rows_;
  const int32_t* labels_;
  uint64_t seed_;
  int64_t epochs_;
  bool keep_order_;
  EpochOrder order_, upcoming_;
  int64_t upcoming_epoch_ = -1;
  std::future<void> shuffling_;  // fills upcoming_; waited for before that goes away
};

}  // namespace mase
