// SPDX-License-Identifier: Apache-2.0
#include "mase/train/epoch_order.h"

#include <numeric>

#include "mase/base/random.h"

namespace mase {

void shuffle_rows(EpochOrder& order, const int32_t* labels, uint64_t seed, int64_t epoch) {
  std::iota(order.rows.begin(), order.rows.end(), 0u);
  Random(seed, "shuffle", static_cast<uint64_t>(epoch))
      .shuffle(order.rows.data(), order.rows.size());
  for (size_t i = 0; i < order.labels.size(); ++i) order.labels[i] = labels[order.rows[i]];
}

}  // namespace mase
