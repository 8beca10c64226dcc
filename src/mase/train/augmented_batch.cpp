// SPDX-License-Identifier: Apache-2.0
#include "mase/train/augmented_batch.h"

#include "mase/data/augmentation.h"

namespace mase {

AugmentedBatch::AugmentedBatch(const Dataset& dataset, int64_t largest, uint64_t seed)
    : augmentation_(dataset.augmentation),
      scale_(dataset.train.bytes),
      sample_(dataset.sample_shape()),
      seed_(seed) {
  if (sample_.size() != 3 || !scale_ || !dataset.classification)
    throw Error(dataset.name, "only images with classes can be flipped and cropped",
                "leave the augmentation out");
  Shape shape = sample_;
  shape.insert(shape.begin(), largest);
  changed_ = Tensor(shape, DType::u8);
}

void AugmentedBatch::take(const Tensor& samples, int64_t epoch, Batch& batch) {
  MASE_CHECK(batch.target_in_order, "the target of an augmented batch is in order");
  const int64_t width = element_count(sample_);
  const auto* from = samples.data<uint8_t>();
  auto* to = changed_.mutable_data<uint8_t>();
  for (int64_t i = 0; i < batch.size; ++i) {
    const uint32_t row = batch.rows[static_cast<size_t>(i)];
    augment_sample(augmentation_, sample_, seed_, static_cast<uint64_t>(epoch), row,
                   from + static_cast<int64_t>(row) * width, to + i * width);
  }
  batch.inputs[0] = RowTensor(changed_, scale_.get());
  batch.rows = {};
  batch.upcoming = {};
  batch.first_row = 0;
}

}  // namespace mase
