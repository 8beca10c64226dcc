// SPDX-License-Identifier: Apache-2.0
#include "mase/base/byte_scale.h"

namespace mase {
namespace {

// Of a fixed length, and apart in memory: what g++ 12 makes vectors of at -O2.
constexpr size_t piece = 16;
void apply_piece(const uint8_t* __restrict bytes, const float* __restrict offset,
                 const float* __restrict scale, float* __restrict out) {
  for (size_t i = 0; i < piece; ++i) out[i] = (static_cast<float>(bytes[i]) - offset[i]) / scale[i];
}

}  // namespace

void ByteScale::apply(const uint8_t* bytes, float* out) const {
  const size_t count = offset.size();
  size_t i = 0;
  for (; i + piece <= count; i += piece)
    apply_piece(bytes + i, offset.data() + i, scale.data() + i, out + i);
  for (; i < count; ++i) out[i] = (static_cast<float>(bytes[i]) - offset[i]) / scale[i];
}

}  // namespace mase
