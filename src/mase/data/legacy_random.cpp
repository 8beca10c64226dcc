// SPDX-License-Identifier: Apache-2.0
#include "mase/data/legacy_random.h"

#include <cmath>
#include <cstddef>
#include <numeric>
#include <random>
#include <utility>

namespace mase {
namespace {

// A number in [0, largest]. NumPy masks to the next power of two and rejects, which fixes how many
// words of the generator each draw takes.
uint32_t bounded(std::mt19937& generator, uint32_t largest) {
  uint32_t mask = largest;
  for (int shift = 1; shift <= 16; shift *= 2) mask |= mask >> shift;
  while (true) {
    const uint32_t word = static_cast<uint32_t>(generator()) & mask;
    if (word <= largest) return word;
  }
}

}  // namespace

std::vector<uint32_t> numpy_permutation(uint32_t seed, uint32_t n) {
  std::vector<uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0u);
  std::mt19937 generator(seed);
  for (uint32_t i = n; i-- > 1;) std::swap(order[i], order[bounded(generator, i)]);
  return order;
}

SplitRows train_test_split(uint32_t n, double share, uint32_t seed) {
  const std::vector<uint32_t> order = numpy_permutation(seed, n);
  const auto taken = static_cast<std::ptrdiff_t>(std::ceil(share * n));
  return {{order.begin() + taken, order.end()}, {order.begin(), order.begin() + taken}};
}

}  // namespace mase
