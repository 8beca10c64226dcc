// SPDX-License-Identifier: Apache-2.0
#include "mase/passes/criterion.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mase {

std::vector<int64_t> least_important(const std::vector<double>& importance,
                                     const Sparsity& sparsity, int64_t row) {
  std::vector<int64_t> gone;
  const auto take = [&](int64_t first, int64_t last, int64_t count) {
    std::vector<int64_t> order(static_cast<size_t>(last - first));
    std::iota(order.begin(), order.end(), first);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
      return importance[static_cast<size_t>(a)] < importance[static_cast<size_t>(b)];
    });
    gone.insert(gone.end(), order.begin(),
                order.begin() + std::min<int64_t>(count, static_cast<int64_t>(order.size())));
  };
  const auto all = static_cast<int64_t>(importance.size());
  if (sparsity.m == 0) {
    take(0, all, std::llround(sparsity.share * static_cast<double>(all)));
    return gone;
  }
  for (int64_t first = 0; first < all; first += row)
    for (int64_t at = first; at < std::min(all, first + row); at += sparsity.m) {
      const int64_t last = std::min({at + sparsity.m, first + row, all});
      take(at, last, last - at - std::min(last - at, sparsity.n));
    }
  return gone;
}

}  // namespace mase
