// SPDX-License-Identifier: Apache-2.0
// The samples of a batch as training is to see them this time, in memory of their own.
#pragma once

#include "mase/data/dataset.h"
#include "mase/engine/batch.h"

namespace mase {

class AugmentedBatch {
 public:
  // `largest`: samples of a batch. An Error if the data cannot be augmented.
  AugmentedBatch(const Dataset& dataset, int64_t largest, uint64_t seed);

  // The batch's rows of `samples`, augmented, take the place of its input. Its target must be in
  // order already.
  void take(const Tensor& samples, int64_t epoch, Batch& batch);

 private:
  const Augmentation& augmentation_;
  std::shared_ptr<const ByteScale> scale_;
  Shape sample_;
  uint64_t seed_;
  Tensor changed_;
};

}  // namespace mase
