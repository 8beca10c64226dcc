// SPDX-License-Identifier: Apache-2.0
// A tensor in a few numbers, in double precision. Values that are not finite are counted and left
// out of the others.
#pragma once

#include "mase/base/tensor.h"

namespace mase {

struct TensorSummary {
  int64_t count = 0, zeros = 0, not_finite = 0;
  double minimum = 0, maximum = 0, mean = 0;
  double deviation = 0;  // of a sample (n - 1), as PyTorch's std; NaN for a single value
};

TensorSummary summarize(const Tensor& tensor);

}  // namespace mase
