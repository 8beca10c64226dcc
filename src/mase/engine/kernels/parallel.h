// SPDX-License-Identifier: Apache-2.0
// Independent pieces of work, shared among threads. Without threads it is a plain loop: even an
// OpenMP region of one thread sets up a team, which costs as much as a small layer.
#pragma once

#include <cstdint>

namespace mase::kernels {

// Calls body(i) for every i in [0, count), by `threads` threads.
template <class Body>
void for_each_piece(int64_t count, int threads, const Body& body) {
  if (threads <= 1 || count <= 1) {
    for (int64_t i = 0; i < count; ++i) body(i);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(static)
  for (int64_t i = 0; i < count; ++i) body(i);
}

}  // namespace mase::kernels
