// SPDX-License-Identifier: Apache-2.0
#include "mase/train/epoch_order.h"

#include <numeric>
#include <utility>

#include "mase/base/random.h"

namespace mase {

EpochOrders::EpochOrders(int64_t rows, const int32_t* labels, uint64_t seed, int64_t epochs,
                         bool keep_order)
    : rows_(static_cast<size_t>(rows)),
      labels_(labels),
      seed_(seed),
      epochs_(epochs),
      keep_order_(keep_order) {}

void EpochOrders::shuffle(EpochOrder& order, int64_t epoch) const {
  std::iota(order.rows.begin(), order.rows.end(), 0u);
  if (!keep_order_)
    Random(seed_, "shuffle", static_cast<uint64_t>(epoch))
        .shuffle(order.rows.data(), order.rows.size());
  for (size_t i = 0; i < order.labels.size(); ++i) order.labels[i] = labels_[order.rows[i]];
}

const EpochOrder& EpochOrders::of(int64_t epoch) {
  if (shuffling_.valid()) shuffling_.get();
  const auto make_room = [&](EpochOrder& order) {
    order.rows.resize(rows_);
    order.labels.resize(labels_ ? rows_ : 0);
  };
  if (upcoming_epoch_ == epoch) {
    std::swap(order_, upcoming_);
  } else {
    make_room(order_);
    shuffle(order_, epoch);
  }
  upcoming_epoch_ = epoch + 1;
  if (upcoming_epoch_ < epochs_) {
    make_room(upcoming_);
    shuffling_ = std::async(std::launch::async,
                            [this, next = upcoming_epoch_] { shuffle(upcoming_, next); });
  }
  return order_;
}

}  // namespace mase
