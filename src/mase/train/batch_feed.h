// SPDX-License-Identifier: Apache-2.0
// The batches of a training run: which rows each takes, and which of them are this process's.
#pragma once

#include <cstdint>
#include <optional>

#include "mase/data/dataset.h"
#include "mase/engine/batch.h"
#include "mase/train/augmented_batch.h"
#include "mase/train/communicator.h"
#include "mase/train/epoch_order.h"

namespace mase {

class BatchFeed {
 public:
  BatchFeed(const Dataset& dataset, int64_t batch_size, uint64_t seed, int64_t epochs,
            const Communicator& processes);

  int64_t rows() const { return rows_; }
  int64_t batches() const { return batches_; }  // of an epoch
  int64_t size(int64_t index) const;            // rows of a batch, those of all processes

  // A last batch with fewer rows than processes is run by all of them: means stay what they are.
  bool is_shared(int64_t index) const { return size(index) < processes_.size(); }

  void start(int64_t epoch);
  // This process's part of the batch, in the same object each time: a step allocates nothing.
  const Batch& take(int64_t index);

 private:
  const Dataset& data_;
  const Communicator& processes_;
  int64_t batch_size_, rows_, batches_;
  Tensor samples_;
  EpochOrders orders_;
  const EpochOrder* order_ = nullptr;  // of this epoch
  int64_t epoch_ = 0;
  std::optional<AugmentedBatch> augmented_;
  Batch batch_;
};

}  // namespace mase
