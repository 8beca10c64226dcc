// SPDX-License-Identifier: Apache-2.0
// What one core can do at most, measured: the yardstick of `ch bench primitives`.
#pragma once

#include <cstdint>

namespace mase::kernels {

// `rounds` times as many independent multiply-adds as hide their latency; returns how many floating
// point operations that was. `keep` gets a number that depends on all of them.
double peak_multiply_adds(int64_t rounds, float* keep);

}  // namespace mase::kernels
