// SPDX-License-Identifier: Apache-2.0
// Elements of constants put into other places, whatever their type.
#pragma once

#include <cstdint>
#include <vector>

#include "mase/base/tensor.h"

namespace mase::onnx {

// Dimension i of the result is dimension order[i] of the tensor.
Tensor transposed(const Tensor& tensor, const std::vector<int64_t>& order);
// So many entries of a dimension: start, start + step, ...
Tensor sliced(const Tensor& tensor, int64_t axis, int64_t start, int64_t step, int64_t count);
// Entries of a dimension by number; the numbers are inside it.
Tensor gathered(const Tensor& tensor, int64_t axis, const std::vector<int64_t>& indices,
                const Shape& index_shape);
// Dimensions of size 1 repeated; `shape` is what the tensor broadcasts to.
Tensor expanded(const Tensor& tensor, const Shape& shape);

}  // namespace mase::onnx
