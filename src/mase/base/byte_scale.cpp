// SPDX-License-Identifier: Apache-2.0
#include "mase/base/byte_scale.h"

namespace mase {

void ByteScale::apply(const uint8_t* bytes, float* out) const {
  const size_t count = offset.size();
  const float *from = offset.data(), *by = scale.data();
// g++ 12 leaves loops of unknown length scalar at -O2; the division is exact either way.
#pragma omp simd
  for (size_t i = 0; i < count; ++i) out[i] = (static_cast<float>(bytes[i]) - from[i]) / by[i];
}

}  // namespace mase
