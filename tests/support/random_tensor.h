// SPDX-License-Identifier: Apache-2.0
// Normal numbers of a given size for tests.
#pragma once

#include "mase/base/random.h"
#include "mase/base/tensor.h"

namespace mase::test {

inline Tensor random_tensor(const Shape& shape, double size, uint64_t seed) {
  Random random(seed, "tensor");
  Tensor tensor(shape);
  for (int64_t i = 0; i < tensor.numel(); ++i)
    tensor.mutable_data<float>()[i] = static_cast<float>(random.normal() * size);
  return tensor;
}

}  // namespace mase::test
