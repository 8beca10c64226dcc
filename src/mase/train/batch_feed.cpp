// SPDX-License-Identifier: Apache-2.0
#include "mase/train/batch_feed.h"

#include <algorithm>
#include <span>

#include "mase/data/token_rows.h"

namespace mase {

BatchFeed::BatchFeed(const Dataset& dataset, int64_t batch_size, uint64_t seed, int64_t epochs,
                     const Communicator& processes)
    : data_(dataset),
      processes_(processes),
      batch_size_(batch_size),
      rows_(dataset.train.rows()),
      batches_((rows_ + batch_size - 1) / batch_size),
      samples_(dataset.train.x),
      orders_(rows_,
              dataset.train.labels.numel() > 0 && !has_token_labels(dataset)
                  ? dataset.train.labels.data<int32_t>()
                  : nullptr,
              seed, epochs, keeps_order(dataset)) {
  // Rows are taken in random order: from own memory, in huge pages, this is much faster than from
  // the pages of a mapped file.
  samples_.mutable_raw();
  if (dataset.augmentation.active()) augmented_.emplace(dataset, std::min(batch_size, rows_), seed);
}

int64_t BatchFeed::size(int64_t index) const {
  return std::min(batch_size_, rows_ - index * batch_size_);
}

void BatchFeed::start(int64_t epoch) {
  epoch_ = epoch;
  order_ = &orders_.of(epoch);
  batch_.inputs = {RowTensor(samples_, data_.train.bytes.get())};
  if (has_token_labels(data_)) batch_.target = RowTensor(data_.train.labels, "target");
  if (data_.train.targets.numel() > 0) batch_.target = RowTensor(data_.train.targets, "target");
}

const Batch& BatchFeed::take(int64_t index) {
  const int64_t first = index * batch_size_, whole = size(index);
  int64_t from = whole * processes_.rank() / processes_.size();
  int64_t to = whole * (processes_.rank() + 1) / processes_.size();
  if (is_shared(index)) from = 0, to = whole;
  const auto begin = static_cast<size_t>(first + from), count = static_cast<size_t>(to - from);
  batch_.rows = std::span(order_->rows).subspan(begin, count);
  if (!order_->labels.empty()) {
    batch_.target = RowTensor(std::span(order_->labels).subspan(begin, count), "target");
    batch_.target_in_order = true;
  }
  batch_.size = to - from;
  batch_.first_sample = from;
  batch_.whole_size = whole;
  batch_.upcoming = {};
  if (index + 1 < batches_ && processes_.size() == 1)
    batch_.upcoming =
        std::span(order_->rows).subspan(begin + count, static_cast<size_t>(size(index + 1)));
  batch_.step = static_cast<uint64_t>(epoch_ * batches_ + index);
  if (augmented_) augmented_->take(samples_, epoch_, batch_);
  return batch_;
}

}  // namespace mase
