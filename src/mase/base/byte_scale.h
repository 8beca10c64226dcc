// SPDX-License-Identifier: Apache-2.0
// Samples kept as the bytes they are published in, and the numbers they stand for: a quarter of the
// memory of floats.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace mase {

struct ByteScale {
  std::vector<float> offset, scale;  // of each value of a sample: (byte - offset) / scale

  // One sample.
  void apply(const uint8_t* bytes, float* out) const;
};

}  // namespace mase
